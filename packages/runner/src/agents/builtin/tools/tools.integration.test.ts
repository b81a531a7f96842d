import { existsSync } from "node:fs";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { keepEnds } from "../../../system/output.ts";
import { makeWorkplace } from "../../../testing/workplace.ts";
import { workTools } from "../index.ts";

async function setUp(options: { maxCommandMs?: number } = {}) {
  const { workdir } = await makeWorkplace();
  const environment = { PATH: process.env["PATH"] ?? "", GREETING: "hi" };
  const workplace = { workdir, environment, maxCommandMs: 60_000, ...options };
  const tools = workTools.map((create) => create(workplace));
  const call = async (name: string, input: unknown, signal = new AbortController().signal) => {
    const tool = tools.find((entry) => entry.name === name);
    if (tool === undefined) throw new Error(`no ${name}`);
    return await tool.run(input, { signal });
  };
  return { workdir, call, write: (path: string, text: string | Buffer) => writeFile(join(workdir, path), text) };
}

describe("terminal", () => {
  test("shows both streams in order, the given environment and the exit", async () => {
    const { call } = await setUp();
    const command = "for i in 1 2 3; do echo out$i; echo err$i >&2; done; echo $GREETING; exit 4";
    const { text, ok } = await call("terminal", { command });
    expect(text).toBe("out1\nerr1\nout2\nerr2\nout3\nerr3\nhi\n\n[exit code 4]");
    expect(ok).toBe(false);
    expect(await call("terminal", { command: "true" })).toEqual({ text: "[exit code 0]", ok: true });
  });

  test("has an empty standard input", async () => {
    const { call } = await setUp();
    expect(await call("terminal", { command: "cat; echo over" })).toMatchObject({ ok: true });
  });

  test("ends background processes of a finished command", async () => {
    const { call } = await setUp();
    const { text } = await call("terminal", { command: "(sleep 1000 & echo $!); setsid sleep 1000 & echo $!" });
    const pids = text.match(/\d+/g)?.slice(0, 2) ?? [];
    expect(pids).toHaveLength(2);
    for (const pid of pids) expect(existsSync(`/proc/${pid}`) && (await isAlive(pid))).toBe(false);
  });

  test("ends a command at its time limit", async () => {
    const { call } = await setUp();
    const { text, ok } = await call("terminal", { command: "echo begun; sleep 1000", timeoutSeconds: 5 });
    expect(text).toBe("begun\n\n[ended after 5000 ms, its time limit]");
    expect(ok).toBe(false);
  });

  test("accepts no time limit longer than the agent may be silent", async () => {
    const { call } = await setUp({ maxCommandMs: 5_000 });
    await expect(call("terminal", { command: "true", timeoutSeconds: 6 })).rejects.toThrow("timeoutSeconds");
  });

  test("ends a command when the turn is ended", async () => {
    const { call, workdir } = await setUp();
    const controller = new AbortController();
    const running = call("terminal", { command: "mkfifo f; cat f; sleep 1000" }, controller.signal);
    await untilExists(join(workdir, "f"));
    controller.abort();
    expect(await running).toMatchObject({ ok: false, text: expect.stringContaining("interrupted") });
  });

  test("keeps the beginning and the end of a long output and says what is left out", async () => {
    const { call } = await setUp();
    const { text } = await call("terminal", { command: "echo first; yes x | head -c 10000000; echo last" });
    expect(text.length).toBeLessThan(34 * 1024);
    expect(text).toMatch(
      /^first\n[\s\S]*\n\[99\d+ bytes in the middle are left out\]\n[\s\S]*last\n\n\[exit code 0\]$/,
    );
  });
});

async function isAlive(pid: string): Promise<boolean> {
  const stat = await readFile(`/proc/${pid}/stat`, "latin1").catch(() => ") Z");
  return !/\) [ZX]/.test(stat);
}

async function untilExists(path: string): Promise<void> {
  while (!existsSync(path)) await new Promise(setImmediate);
}

describe("createOrUpdateFiles", () => {
  test("writes whole files and replaces text in others", async () => {
    const { call, workdir } = await setUp();
    const content = "const a = 1;\nconst b = 2;\n";
    await call("createOrUpdateFiles", { files: [{ path: "deep/er/a.ts", content }] });
    await call("createOrUpdateFiles", {
      files: [{ path: "deep/er/a.ts", edits: [{ find: "b = 2", replace: "b = $&3" }] }],
    });
    expect(await readFile(join(workdir, "deep/er/a.ts"), "utf8")).toBe("const a = 1;\nconst b = $&3;\n");
  });

  test("writes nothing if one of the edits does not apply", async () => {
    const { call, workdir, write } = await setUp();
    await write("a.txt", "x x");
    const files = [
      { path: "b.txt", content: "b" },
      { path: "a.txt", edits: [{ find: "x", replace: "y" }] },
    ];
    await expect(call("createOrUpdateFiles", { files })).rejects.toThrow("a.txt: the text to find occurs 2 times");
    expect(existsSync(join(workdir, "b.txt"))).toBe(false);
  });

  test.each(["../out.txt", "/etc/passwd", "a/../../out.txt", ".git/hooks/pre-commit"])("refuses %s", async (path) => {
    const { call } = await setUp();
    await expect(call("createOrUpdateFiles", { files: [{ path, content: "" }] })).rejects.toThrow(path);
  });
});

describe("readFiles", () => {
  test("reads lines of files and mentions the rest", async () => {
    const { call, write } = await setUp();
    await write("a.txt", "1\n2\n3\n4\n");
    expect(await call("readFiles", { paths: ["a.txt"] })).toEqual({ text: "1\n2\n3\n4\n", ok: true });
    const { text } = await call("readFiles", { paths: ["a.txt"], fromLine: 2, lineCount: 2 });
    expect(text).toBe("2\n3\n[lines 2 to 3 of 5]");
  });

  test("reads what it can and names what it cannot", async () => {
    const { call, write } = await setUp();
    await write("a.txt", "a");
    await write("b.bin", Buffer.from([1, 0, 2]));
    const { text, ok } = await call("readFiles", { paths: ["a.txt", "none.txt", "b.bin", ".."] });
    expect(ok).toBe(false);
    expect(text).toMatch(/^=== a.txt\na\n=== none.txt\nENOENT[\s\S]*=== b.bin\n\[not text: 3 bytes[\s\S]*outside of/);
  });

  test("keeps within its limit", async () => {
    const { call, write } = await setUp();
    await write("big.txt", "x".repeat(3_000_000));
    expect((await call("readFiles", { paths: ["big.txt"] })).text.length).toBeLessThan(66 * 1024);
  });
});

describe("listFiles and search", () => {
  test("leave out .git and node_modules", async () => {
    const { call, workdir, write } = await setUp();
    for (const directory of [".git", "src", "node_modules/dep"])
      await mkdir(join(workdir, directory), { recursive: true });
    for (const path of [".git/config", "src/a.ts", "src/b.js", "node_modules/dep/index.js"])
      await write(path, "needle 1\n");
    expect((await call("listFiles", {})).text.split("\n")).toEqual(["src", "src/a.ts", "src/b.js"]);
    expect((await call("listFiles", { glob: "*.ts", path: "src" })).text).toBe("a.ts");
    expect((await call("search", { pattern: "needle [0-9]" })).text).toBe("src/a.ts:1:needle 1\nsrc/b.js:1:needle 1");
    expect((await call("search", { pattern: "NEEDLE", path: join(workdir, "src/a.ts"), ignoreCase: true })).text).toBe(
      "src/a.ts:1:needle 1",
    );
    expect((await call("search", { pattern: "nothing" })).text).toBe("[nothing found]");
  });

  test("explain what they refuse", async () => {
    const { call } = await setUp();
    await expect(call("search", { pattern: "(" })).rejects.toThrow(/parenthes|Unmatched/i);
    await expect(call("search", { pattern: "x", path: "../.." })).rejects.toThrow("outside");
    await expect(call("listFiles", { path: ".." })).rejects.toThrow("outside");
    await expect(call("listFiles", { glob: "**/../../*" })).rejects.toThrow("outside");
    await expect(call("listFiles", { glob: "/etc/*" })).rejects.toThrow("outside");
  });

  test("keep within their limits", async () => {
    const { call, write } = await setUp();
    await Promise.all(Array.from({ length: 1_100 }, (_, index) => write(`${index}.txt`, "needle\n")));
    expect((await call("listFiles", {})).text).toContain("[more than 1000");
    await write("long.txt", "needle\n".repeat(100_000));
    expect((await call("search", { pattern: "needle" })).text.length).toBeLessThan(34 * 1024);
  });
});

test("an output of exactly the limit is whole; one byte more is cut", () => {
  const keeper = keepEnds(8);
  keeper.add(Buffer.from("12345678"));
  expect(keeper.text()).toBe("12345678");
  keeper.add(Buffer.from("9"));
  expect(keeper.text()).toBe("1234\n[1 bytes in the middle are left out]\n6789");
});
