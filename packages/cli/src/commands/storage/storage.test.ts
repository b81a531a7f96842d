import { mkdtempSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { runCli } from "../../testing/run-cli.ts";
import { addSandbox, createStubProvider } from "../../testing/stub-provider.ts";

const scratch = mkdtempSync(join(tmpdir(), "slipway-cli-storage-"));
afterAll(() => rmSync(scratch, { recursive: true }));
const env = { SLIPWAY_STATE_DIR: join(scratch, "state") };
const storage = (...words: string[]) => runCli(["storage", ...words], { env });

describe("versions", () => {
  test("are made of a local directory, listed, read back and deleted", async () => {
    const source = mkdtempSync(join(scratch, "source-"));
    writeFileSync(join(source, "run.sh"), "#!\n", { mode: 0o750 });
    symlinkSync("run.sh", join(source, "link"));
    const put = await storage("put", source, "shared");
    expect(put).toMatchObject({ code: 0, stdout: expect.stringMatching(/^\d{4}-\d\d-\d\dT\S+Z-\w{6}\n$/) });
    expect((await storage("versions", "shared")).stdout).toBe(put.stdout);
    const target = join(scratch, "target");
    expect(await storage("get", "shared", target, "--json")).toMatchObject({ code: 0 });
    expect(readFileSync(join(target, "link"), "utf8")).toBe("#!\n");
    expect(statSync(join(target, "run.sh")).mode & 0o777).toBe(0o750);
    expect(await storage("rm", "shared", put.stdout.trim())).toMatchObject({ code: 0 });
    expect(await storage("versions", "shared", "--json")).toMatchObject({ stdout: "[]\n" });
  });

  test.each([
    [["versions", "projects/../x"], "invalid_request"],
    [["versions", "a/../b"], "invalid_request"],
    [["versions", "s3://bucket/x"], "invalid_settings"],
    [["get", "nothing", "there"], "version_not_found"],
    [["get", "nothing", "there", "--version", "../x"], "version_not_found"],
    [["rm", "nothing", "2026-11-19T21-30-05.123Z-k3f9ab"], "version_not_found"],
    [["put", join(scratch, "missing"), "shared"], "local_failure"],
  ])("%j is refused as %s", async (words, code) => {
    expect(await storage(...words)).toMatchObject({ code: 125, stderr: expect.stringContaining(`code: ${code}`) });
  });
});

describe("a sandbox", () => {
  test("is not created when its place or its version cannot be", async () => {
    for (const words of [
      ["--workspace", ".."],
      ["--volume", "ann/.."],
      ["--volume", "ann"],
      ["--version", "x"],
      ["--workspace", "s3://bucket"],
      ["--workspace", "a", "--idempotency-key", "k"],
      ["--volume", "a/b", "--volume", "a/b"],
    ]) {
      const provider = createStubProvider();
      expect(await runCli(["sandbox", "create", ...words], { provider, env })).toMatchObject({ code: 125, stdout: "" });
      expect(provider.created).toEqual([]);
    }
  });

  test("that cannot get its files is destroyed", async () => {
    const calls: string[] = [];
    const destroy = async () => void calls.push("destroy") as never;
    const provider = createStubProvider({}, { destroy });
    const words = ["sandbox", "create", "--workspace", "a", "--version", "2026-11-19T21-30-05.123Z-k3f9ab"];
    const { code, stderr } = await runCli(words, { provider, env });
    expect({ code, calls }).toEqual({ code: 125, calls: ["destroy"] });
    expect(stderr).toContain("code: version_not_found");
    expect(provider.created[0]?.labels).toEqual({ "storage:/workspace": "a" });
  });

  test("without files of the storage is neither synced nor destroyed by rm --sync", async () => {
    const calls: string[] = [];
    const destroy = async () => void calls.push("destroy") as never;
    const provider = createStubProvider({}, { destroy });
    addSandbox(provider, { labels: { name: "box" } });
    expect(await runCli(["sandbox", "rm", "--sync", "box"], { provider, env })).toMatchObject({ code: 125 });
    expect(await runCli(["storage", "sync", "box"], { provider, env })).toMatchObject({ code: 125 });
    const toShared = await runCli(["storage", "sync", "box", "--place", "shared"], { provider, env });
    expect(toShared.stderr).toContain("No sandbox writes to the shared files.");
    expect(calls).toEqual([]);
  });
});

test("every mistake in the settings of the storage is told at once, and no secret", async () => {
  const wrong = {
    SLIPWAY_STORAGE: "s3://bucket/../x",
    AWS_ENDPOINT_URL_S3: "ftp://x",
    AWS_REGION: "Nowhere!",
    AWS_SECRET_ACCESS_KEY: "very-secret",
  };
  const { stderr } = await runCli(["storage", "versions", "a"], { env: { ...env, ...wrong } });
  for (const name of ["SLIPWAY_STORAGE", "AWS_ENDPOINT_URL_S3", "AWS_REGION"]) expect(stderr).toContain(`- ${name}: `);
  const half = { SLIPWAY_STORAGE: "s3://bucket", AWS_SECRET_ACCESS_KEY: "very-secret" };
  const missing = await runCli(["storage", "versions", "a"], { env: { ...env, ...half } });
  expect(missing.stderr).toContain("- AWS_ACCESS_KEY_ID: SLIPWAY_STORAGE is in S3, which needs it.");
  expect(stderr + missing.stderr).not.toContain("very-secret");
});
