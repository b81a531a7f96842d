import { expect, test } from "vitest";
import { readBytes, readText, run } from "./run.ts";
import { createFakeProvider } from "./testing/fake-provider.ts";

async function sandboxWith(programs: Parameters<typeof createFakeProvider>[0]) {
  return await createFakeProvider(programs).create({});
}

test("a run answers what the command said and how it ended", async () => {
  const sandbox = await sandboxWith({
    greet: async ({ argv, stdin, stdout, stderr }) => {
      for await (const data of stdin) stdout.write(data);
      stderr.write(argv[1] ?? "");
      return 3;
    },
  });
  const result = await run(sandbox, ["greet", "err"], { input: "in" });
  expect(result).toMatchObject({ stdout: "in", stderr: "err", exitCode: 3, truncated: false });
  expect(result.exit.reason).toBe("exited");
});

test("more output than is kept is read, dropped and told", async () => {
  const sandbox = await sandboxWith({
    flood: async ({ stdout }) => {
      for (let i = 0; i < 100; i++) stdout.write("x".repeat(100_000));
      return 0;
    },
  });
  const result = await run(sandbox, ["flood"], { maxBytes: 5 });
  expect(result).toMatchObject({ stdout: "xxxxx", truncated: true, exitCode: 0 });
  expect(result.exit.stdoutBytes).toBe(10_000_000);
});

test("the end of the output is kept where that is asked for, in however many pieces it comes", async () => {
  const sandbox = await sandboxWith({
    count: async ({ stdout }) => {
      for (let i = 0; i < 1000; i++) stdout.write(`${i} `);
      return 0;
    },
  });
  expect(await run(sandbox, ["count"], { maxBytes: 8, keep: "end" })).toMatchObject({
    stdout: "998 999 ",
    truncated: true,
  });
  expect((await run(sandbox, ["count"], { keep: "end" })).stdout).toMatch(/^0 1 2 .* 999 $/);
});

test("a command that does not read its input is no failure", async () => {
  const sandbox = await sandboxWith({ deaf: async () => 0 });
  expect(await run(sandbox, ["deaf"], { input: "x".repeat(5_000_000) })).toMatchObject({ exitCode: 0 });
});

test("a file is read whole up to a bound, bytes or text", async () => {
  const { files } = await sandboxWith({});
  await files.write("f", "\ufefftext ☃");
  expect(await readText(files, "f")).toBe("\ufefftext ☃");
  expect(await readBytes(files, "f")).toHaveLength(11);
  await expect(readBytes(files, "f", { maxBytes: 10 })).rejects.toMatchObject({ code: "too_large" });
});
