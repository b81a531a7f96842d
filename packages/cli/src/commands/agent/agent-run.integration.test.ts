import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { createReadStream, writeFileSync } from "node:fs";
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { demo, startScriptedModel } from "@slipway/gateway/scripted";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { type Bin, type BinRun, openBin } from "../../testing/bin.ts";

let bin: Bin;
let project: string;

beforeAll(async () => {
  bin = await openBin();
  for (const name of ["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "SLIPWAY_MODEL"]) delete bin.environment[name];
});
afterAll(() => bin[Symbol.asyncDispose]());
beforeEach(async () => {
  project = await mkdtemp(join(tmpdir(), "agent-run-"));
  await writeFile(join(project, "README.md"), "# Project\n");
});
afterEach(() => rm(project, { recursive: true, force: true }));

const run = (...words: string[]): Promise<BinRun> => bin.run(["agent", "run", "--dir", project, ...words]);
const scripted = ["--model", "scripted/demo"];

it("an agent works on a copy; --apply brings its changes to the directory", async () => {
  const { code, stdout, stderr } = await run(...scripted, "--apply", "Say", "hello");
  expect({ code, stderr }).toMatchObject({ code: 0, stderr: expect.stringContaining(`applied to ${project}`) });
  expect(stdout).toContain("added hello.mjs");
  expect(stdout).toContain("+++ b/hello.mjs");
  expect(stdout).toMatch(/completed, 0\.\d{4} USD, 2 files changed/);
  expect((await readdir(project)).sort()).toEqual(["README.md", "hello.mjs", "hello.test.mjs"]);
  const { stdout: left } = await bin.run(["sandbox", "list", "--json"]);
  expect(JSON.parse(left)).toEqual([]);
});

it("without --apply, and with nobody to ask, the directory stays as it is", async () => {
  const { code, stderr } = await run(...scripted, "Say hello");
  expect(code).toBe(0);
  const [, file] = /not applied; changes saved in (.*)\n/.exec(stderr) ?? [];
  expect(await readFile(String(file), "utf8")).toContain("+++ b/hello.mjs");
  expect(await readdir(project)).toEqual(["README.md"]);
});

it("--json gives every event and the result, each in a line", async () => {
  const { code, stdout } = await run(...scripted, "--json", "--keep", "Say hello");
  expect(code).toBe(0);
  const lines = stdout
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
  const { result } = lines.pop();
  expect(lines.map(({ sequence }) => sequence)).toEqual(lines.map((_, index) => index + 1));
  expect(result).toMatchObject({ reason: "completed", applied: false, patch: expect.stringContaining("hello.mjs") });
  expect(result.costUsd).toBeGreaterThan(0);
  const kept = await bin.run(["sandbox", "exec", result.sandbox, "--", "node", "hello.mjs", "Ada"]);
  expect(kept.stdout).toBe("Hello, Ada!\n");
});

it("changes that do not fit any more are kept as a file, and nothing is half done", async () => {
  // The user writes a file of the same name once the agent has its copy, and asks what to do.
  await using model = await startScriptedModel({
    programs: { demo },
    listen: { host: "127.0.0.1", port: 0 },
    onRequest: () => writeFileSync(join(project, "hello.mjs"), "mine\n"),
  });
  const prices = `${bin.stateDir}-prices.json`;
  const price = { input: 1, output: 1, cacheRead: 1, cacheWrite: 1, maxOutputTokens: 8000 };
  await writeFile(prices, JSON.stringify({ date: "2026-01-01", models: { "anthropic/demo": price } }));
  const { code } = await bin.run(
    ["agent", "run", "--dir", project, "--model", "anthropic/demo", "--apply", "Say hello"],
    "",
    { ANTHROPIC_API_KEY: "sk-ant-test", ANTHROPIC_BASE_URL: model.baseUrl, SLIPWAY_PRICES: prices },
  );
  expect(code).toBe(125);
  expect(await readFile(join(project, "hello.mjs"), "utf8")).toBe("mine\n");
  const names = await readdir(project);
  expect(names).not.toContain("hello.test.mjs");
  expect(names.find((name) => /^slipway-run_.*\.patch$/.test(name))).toBeDefined();
});

it("prompts are written down when that is asked for, for nobody else to read", async () => {
  const words = ["agent", "run", "--dir", project, ...scripted, "Say hello"];
  const asked = await bin.run(words, "", { SLIPWAY_LOG_PROMPTS: "1" });
  const [, file] = /logging prompts to (.*)\n/.exec(asked.stderr) ?? [];
  expect(await readFile(String(file), "utf8")).toContain("Say hello");
  expect((await stat(String(file))).mode & 0o777).toBe(0o600);
  const usual = await bin.run(words);
  expect(usual.stderr).not.toContain("prompts");
  const [, id] = /run (run_\w+) in sandbox/.exec(usual.stderr) ?? [];
  expect(await readdir(join(bin.stateDir, "runs", String(id)))).not.toContain("prompts.jsonl");
});

describe("what cannot work is refused with what to do:", () => {
  it.each<[string, string[], string[]]>([
    ["a missing key", ["Say hello"], ["ANTHROPIC_API_KEY", "code: missing_key"]],
    ["an unknown provider", ["--model", "nowhere/model", "Say hello"], ["nowhere", "code: unknown_model"]],
    [
      "an unknown model of a script",
      ["--model", "scripted/nothing", "Say hello"],
      ["scripted/demo, scripted/echo", "code: unknown_model"],
    ],
    ["a model without a provider", ["--model", "sonnet", "Say hello"], ["sonnet", "code: invalid_settings"]],
    ["an unknown agent", ["--agent", "emacs", "Say hello"], ["builtin, claude-code", "code: unknown_agent"]],
    ["an unknown agent of acp", ["--agent", "acp:emacs", ...scripted, "Say hello"], ["code: unknown_agent"]],
    ["an agent that is not installed", ["--agent", "acp:codex", ...scripted, "Say hello"], ["code: component_missing"]],
    ["an empty prompt", [...scripted, " "], ["code: invalid_request"]],
    ["a prompt that is missing", [...scripted], ["code: invalid_request"]],
    ["--apply beside --no-apply", [...scripted, "--apply", "--no-apply", "x"], ["code: invalid_request"]],
    ["a budget that is no number", [...scripted, "--budget", "much", "x"], ["--budget", "code: invalid_request"]],
    ["too many workers", [...scripted, "--workers", "9", "x"], ["--workers", "code: invalid_request"]],
  ])("%s", async (_, words, expected) => {
    const { code, stdout, stderr } = await run(...words);
    expect(code).not.toBe(0);
    for (const text of expected) expect(stdout + stderr).toContain(text);
    expect(await readdir(project)).toEqual(["README.md"]);
  });

  it("a directory that is not there", async () => {
    const { code, stderr } = await bin.run(["agent", "run", "--dir", join(project, "nope"), ...scripted, "x"]);
    expect(code).toBe(125);
    expect(stderr).toContain(`There is no directory ${join(project, "nope")}.`);
    expect(stderr).toContain("code: invalid_request");
  });

  it("a budget of nothing", async () => {
    const { code, stdout, stderr } = await run(...scripted, "--budget", "0", "Say hello");
    expect(code).toBe(1);
    expect(stderr).toContain("raise it with --budget");
    expect(stdout).toMatch(/budget.*0\.00 USD/);
  });
});

it("a repository is cloned instead of a directory; where that fails, git says why", async () => {
  const git = (...words: string[]) =>
    execFileSync("git", ["-c", "user.name=a", "-c", "user.email=a@example.com", ...words], { cwd: project });
  git("init", "--quiet");
  git("add", ".");
  git("commit", "--quiet", "--message", "A project");
  git("update-server-info");
  // Plain files over HTTP, at an address that is none of the sandbox's own.
  const remote = createServer((request, response) => {
    const file = join(project, ".git", new URL(request.url ?? "/", "http://remote").pathname.slice("/app.git".length));
    createReadStream(file)
      .on("error", () => response.writeHead(404).end())
      .pipe(response);
  }).listen(0, "127.0.0.2");
  await once(remote, "listening");
  const { port } = remote.address() as AddressInfo;
  const cloning = ["agent", "run", "--repo", `http://127.0.0.2:${port}/app.git`, ...scripted, "--no-apply"];
  const open = ["--net", "127.0.0.2/32", "--net-port", String(port)];
  const { code, stdout } = await bin.run([...cloning, ...open, "--json", "--keep", "Say hello"]);
  expect(code).toBe(0);
  const { result } = JSON.parse(stdout.trimEnd().split("\n").at(-1) ?? "");
  expect(result).toMatchObject({ reason: "completed", patch: expect.stringContaining("+++ b/hello.mjs") });
  const kept = await bin.run(["sandbox", "exec", result.sandbox, "--", "cat", "/workspace/project/README.md"]);
  expect(kept.stdout).toBe("# Project\n");
  const closed = await bin.run([...cloning, "Say hello"]);
  expect(closed).toMatchObject({ code: 125, stderr: expect.stringMatching(/git cannot clone.*exec_failed/s) });
  remote.close();
});
