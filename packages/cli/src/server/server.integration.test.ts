import { statSync } from "node:fs";
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createClient } from "@slipway/client";
import { serverFiles } from "@slipway/contract";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { type Bin, openBin } from "../testing/bin.ts";
import { runCli } from "../testing/run-cli.ts";

let slipway: Bin;
let here: string;
const server = {
  SANDBOX_PROVIDER: "simulated",
  SLIPWAY_SIMULATION_SPEED: "5000",
  SLIPWAY_MODEL: "scripted/planner",
  NO_COLOR: "1",
};

beforeAll(async () => {
  slipway = await openBin(server);
  here = await mkdtemp(join(tmpdir(), "slipway-here-"));
});
afterAll(async () => {
  await slipway?.run(["down"]);
  await slipway?.[Symbol.asyncDispose]();
  await rm(here, { recursive: true, force: true });
});

const json = async (...argv: string[]) => {
  const { code, stdout, stderr } = await slipway.run(["--json", ...argv]);
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  return JSON.parse(stdout);
};

test("the first commands start one server in the background, and the ones after them find it", async () => {
  expect(await Promise.all([json("builds"), json("builds")])).toEqual([[], []]);
  expect(await slipway.run(["server"])).toMatchObject({
    code: 125,
    stderr: expect.stringMatching(/another server \(process \d+\) uses the state directory.*code: server_running/s),
  });
});

test("a request becomes an intent and a plan in files, and the build waits until it is resumed", async () => {
  const out = join(here, "planned");
  const { code, stdout, stderr } = await slipway.run(["plan", "--out", out, "a habit tracker"]);
  expect({ code, stderr }).toMatchObject({
    code: 0,
    stderr: expect.stringMatching(/planned: \d+ tasks \(0\.0\d+ USD so far\)/),
  });
  expect(stdout).toMatch(/^Intent locked, sha256:/);
  expect(stdout).toMatch(/critical path: setup -> /);
  const intent = JSON.parse(await readFile(join(out, "slipway-intent.json"), "utf8"));
  const plan = JSON.parse(await readFile(join(out, "slipway-plan.json"), "utf8"));
  expect(plan.intentHash).toBe(intent.hash);
  const build = await json("status");
  expect(build).toMatchObject({ status: "paused", reason: "user", tasks: { pending: plan.tasks.length } });
  expect(build.provider).toMatchObject({ name: "simulated", because: "SANDBOX_PROVIDER is simulated" });
  expect(build.provider.others.map(({ name }: { name: string }) => name)).toEqual(["local", "modal"]);

  const id = build.id.slice(-6);
  await json("resume", id);
  const logs = await slipway.run(["logs", "-f", id]);
  expect({ code: logs.code, stderr: logs.stderr }).toEqual({ code: 0, stderr: "" });
  expect(logs.stdout).toMatch(/ {2}ended: succeeded \(satisfied\)\n$/);
  expect(await slipway.run(["pause", id])).toMatchObject({ code: 125, stderr: expect.stringContaining("build_ended") });
});

/** An editor that needs no terminal, in a program that has one. */
const edit = async (editor: string, ...options: string[]) => {
  const server = createClient({ socketPath: join(slipway.stateDir, serverFiles.socket) });
  const argv = ["plan", "--edit", ...options, "a shop"];
  return await runCli(argv, {
    server,
    terminal: true,
    stdin: "n\n",
    env: { ...process.env, NO_COLOR: "1", EDITOR: editor },
  });
};

test("doctor tells what the server has asked models for", async () => {
  const { stdout } = await slipway.run(["doctor"], "", { SANDBOX_PROVIDER: "local" });
  expect(stdout).toMatch(/^ok {4}server: process \d+, version /m);
  expect(stdout).toMatch(/^ok {4}models of scripted: \d+ requests, .* USD/m);
});

test("an intent is edited before it is locked", async () => {
  const editor = join(here, "editor.mjs");
  const change = 'draft.coreValue = "One look is enough";';
  await writeFile(
    editor,
    `import fs from "node:fs";
     const draft = JSON.parse(fs.readFileSync(process.argv[2], "utf8"));
     ${change}
     fs.writeFileSync(process.argv[2], JSON.stringify(draft));`,
  );
  const out = join(here, "edited");
  const { code, stdout } = await edit(`"${process.execPath}" ${editor}`, "--out", out);
  expect(code).toBe(0);
  expect(stdout).toContain("core value: One look is enough\n");
  expect(JSON.parse(await readFile(join(out, "slipway-intent.json"), "utf8"))).toMatchObject({
    status: "locked",
    intent: { coreValue: "One look is enough", request: "a shop" },
  });
});

test.each([
  ["that fails", "false", /The editor \(false\) ended with 1.*code: exec_failed/s],
  ["that leaves no JSON", "sh -c 'echo {>$0'", /The file is not JSON.*code: invalid_request/s],
  ["that breaks the intent", `sh -c 'echo {\\"criteria\\":[]}>$0'`, /criteria.*code: invalid_request/s],
])("an editor %s locks nothing, what it wrote is kept, and the build waits", async (_, editor, expected) => {
  const { code, stderr } = await edit(editor, "--out", here);
  expect(code).toBe(125);
  expect(stderr).toMatch(expected);
  const { id, planning } = await json("status");
  expect(stderr).toContain(`slipway resume ${id} continues with the drafted intent, slipway cancel ${id} cancels it`);
  const [, kept] = /your edit is saved in (.*)/.exec(stderr) ?? [];
  expect(kept === undefined).toBe(editor === "false");
  if (kept !== undefined) {
    expect(await readFile(kept.trim(), "utf8")).toMatch(/^\{/);
    await rm(dirname(kept.trim()), { recursive: true });
  }
  expect(planning).toMatchObject({ stage: "lock", step: "held" });
  await json("cancel", id);
  expect((await slipway.run(["logs", "-f", id])).code).toBe(1);
  expect((await json("status", id)).status).toBe("cancelled");
});

test("a budget that does not cover the planning pauses the build, and a higher one lets it go on", async () => {
  const poor = await slipway.run(["plan", "--budget", "0.0001", "a shop"]);
  expect(poor).toMatchObject({ code: 1, stdout: expect.stringContaining("paused at its budget") });
  const { id } = await json("status");
  expect(await slipway.run(["resume", "--budget", "0", id])).toMatchObject({
    code: 125,
    stderr: expect.stringContaining("code: inv"),
  });
  await json("resume", "--budget", "5", id);
  await vi.waitFor(async () => {
    const { tasks, ...planned } = await json("status", id);
    expect(tasks.pending).toBeGreaterThan(0);
    expect(planned).toMatchObject({ reason: "user", money: { budgetMicroUsd: 5_000_000 } });
  });
});

test("a command says that it starts the server, and later ones what they would have set otherwise", async () => {
  const own = { SLIPWAY_STATE_DIR: join(here, "own"), BUILD_BUDGET_USD: "7", ANTHROPIC_API_KEY: "secret-1" };
  const builds = async (more: NodeJS.ProcessEnv = {}) =>
    (await slipway.run(["builds"], "", { ...own, ...more })).stderr;
  try {
    expect(await builds()).toMatch(/^starting the server\n/);
    expect(await builds()).not.toMatch(/starting|other values/);
    expect(await builds({ BUILD_BUDGET_USD: "" })).not.toMatch(/other values/);
    expect(await builds({ BUILD_BUDGET_USD: "8", ANTHROPIC_API_KEY: "secret-2" })).toMatch(
      /^The server runs with other values of (BUILD_BUDGET_USD, ANTHROPIC_API_KEY|ANTHROPIC_API_KEY, BUILD_BUDGET_USD)\. Run `slipway down`/,
    );
    expect(await readFile(join(own.SLIPWAY_STATE_DIR, serverFiles.settings), "utf8")).not.toContain("secret");
  } finally {
    await slipway.run(["down"], "", own);
  }
});

test("what a plan leaves in a project is nothing to git", async () => {
  // As npm tells a script where it was called.
  const called = { npm_package_name: "slipway", npm_lifecycle_event: "slipway", INIT_CWD: here };
  const { code, stderr } = await slipway.run(["plan", "a shop"], "", called);
  expect({ code, stderr }).toMatchObject({ code: 0 });
  expect(await readFile(join(here, ".slipway", ".gitignore"), "utf8")).toBe("*\n");
  const [id = ""] = (await readdir(join(here, ".slipway"))).filter((name) => name.startsWith("bld_"));
  expect(await readdir(join(here, ".slipway", id))).toEqual(["slipway-intent.json", "slipway-plan.json"]);
});

describe("a server that cannot start", () => {
  test("looks for files where its user is", async () => {
    const env = { SLIPWAY_STATE_DIR: join(here, "priced"), SLIPWAY_PRICES: "no-such-prices.json" };
    const { code, stderr } = await slipway.run(["builds"], "", env);
    expect(code).toBe(125);
    expect(stderr).toContain(join(process.cwd(), "no-such-prices.json"));
  });

  test("says which settings are wrong", async () => {
    const SLIPWAY_STATE_DIR = join(here, "wrong");
    const env = { SLIPWAY_STATE_DIR, MAX_PARALLEL_SANDBOXES: "many", BUILD_BUDGET_USD: "x" };
    const { code, stderr } = await slipway.run(["builds"], "", env);
    expect(code).toBe(125);
    expect(stderr).toMatch(/2 settings are wrong.*MAX_PARALLEL_SANDBOXES.*BUILD_BUDGET_USD.*code: invalid_settings/s);
  });

  test("and says nothing shows the end of its log", async () => {
    const crash = join(here, "crash.mjs");
    const isServer = 'process.argv[1]?.endsWith("server/src/main.ts")';
    await writeFile(crash, `if (${isServer}) { console.error("a last word"); process.exit(3); }`);
    const env = { SLIPWAY_STATE_DIR: join(here, "silent"), NODE_OPTIONS: `--import=${crash}` };
    const { code, stderr } = await slipway.run(["builds"], "", env);
    expect(code).toBe(125);
    expect(stderr).toMatch(/the end of .*server.log:\na last word\n.*code: server_unavailable/s);
  });

  test("names a state directory that is no path", async () => {
    const { stderr } = await slipway.run(["status"], "", { SLIPWAY_STATE_DIR: "here" });
    expect(stderr).toMatch(/SLIPWAY_STATE_DIR: "here" is not an absolute path.*code: invalid_settings/s);
  });
});

test("a server in the foreground ends with a signal, and its state directory is its user's", async () => {
  const SLIPWAY_STATE_DIR = join(here, "foreground");
  const child = slipway.start(["server"], { SLIPWAY_STATE_DIR });
  let said = "";
  for await (const chunk of child.stderr) {
    said += chunk;
    if (said.includes("listens on")) break;
  }
  const { stdout } = await slipway.run(["--json", "builds"], "", { SLIPWAY_STATE_DIR });
  expect(stdout).toBe("[]\n");
  const code = new Promise((resolve) => child.once("exit", resolve));
  child.kill("SIGTERM");
  expect(await code).toBe(0);
  expect(await readdir(SLIPWAY_STATE_DIR)).not.toContain("server.log");
});

test("whatever the umask, nobody else writes to what a server has made", async () => {
  await using own = await openBin(server);
  const umask = process.umask(0);
  await own.run(["builds"]).finally(() => process.umask(umask));
  const entries = await readdir(own.stateDir, { withFileTypes: true });
  const writable = entries.filter(({ name }) => (statSync(join(own.stateDir, name)).mode & 0o022) !== 0);
  expect(writable.map(({ name }) => name)).toEqual([]);
  expect(statSync(join(own.stateDir, "compile-cache")).mode & 0o077).toBe(0);
  await own.run(["down"]);
});
