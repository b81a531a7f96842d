import { mkdir, mkdtemp, readdir, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { type Bin, type BinRun, openBin, repository } from "../../testing/bin.ts";

/** Real agents take seconds to start, and more beside other tests. */
vi.setConfig({ testTimeout: 300_000 });

/** Where set-up puts other people's agents for tests. */
const installed = join(repository, "scripts", "test-agents");

let bin: Bin;
beforeAll(async () => {
  bin = await openBin({ SLIPWAY_AGENTS: installed });
});
afterAll(() => bin?.[Symbol.asyncDispose]());

it.each(["claude-code", "acp:codex"])("%s works on a copy, and its changes are applied", async (agent) => {
  const project = await mkdtemp(join(tmpdir(), "agent-run-"));
  const words = ["--agent", agent, "--model", "scripted/demo", "--apply", "Say hello"];
  const { code, stdout, stderr } = await bin.run(["agent", "run", "--dir", project, ...words]);
  expect({ code, stderr }).toMatchObject({ code: 0, stderr: expect.stringContaining(`applied to ${project}`) });
  expect(stdout).toMatch(/completed, 0\.\d{4} USD, 2 files changed/);
  expect((await readdir(project)).sort()).toEqual(["hello.mjs", "hello.test.mjs"]);
  await rm(project, { recursive: true });
});

/** A project, and agents that directories describe, each by its program. */
async function openAgents(programs: Readonly<Record<string, string>>) {
  const [project, agents] = [await mkdtemp(join(tmpdir(), "agent-run-")), await mkdtemp(join(tmpdir(), "agents-"))];
  const description = { command: ["agent.mjs"], environment: { URL: "{base_url}", API_KEY: "{token}" } };
  for (const [name, program] of Object.entries(programs)) {
    await mkdir(join(agents, name));
    await writeFile(join(agents, name, "agent.mjs"), program);
    await writeFile(join(agents, name, "agent.json"), JSON.stringify(description));
  }
  const words = (agent: string) => [
    ...["agent", "run", "--dir", project, "--model", "scripted/demo", "--agent", agent, "Say hello"],
  ];
  return {
    project,
    words,
    environment: { SLIPWAY_AGENTS: agents },
    async [Symbol.asyncDispose]() {
      for (const directory of [project, agents]) await rm(directory, { recursive: true });
    },
  };
}

it("an agent that its directory describes runs by its name, and how it fails is told", async () => {
  await using agents = await openAgents({ ours: 'console.error("no licence"); process.exit(3);' });
  const ran = await bin.run(agents.words("acp:ours"), "", agents.environment);
  expect(ran).toMatchObject({ code: 1, stdout: expect.stringMatching(/crashed: .*exit code 3\. no licence, /) });
  const unknown = await bin.run(agents.words("acp:emacs"), "", agents.environment);
  expect(unknown.stderr).toMatch(/acp:codex.*acp:ours.*code: unknown_agent/s);
});

it("of changes that are too large to collect the sandbox is kept, with the end and the cost told, and the way to its files", async () => {
  const large = `import { writeFileSync } from "node:fs";
writeFileSync("large", "x".repeat(999).concat("\\n").repeat(40_000));
process.exit(3);`;
  await using agents = await openAgents({ large });
  const { code, stdout, stderr } = await bin.run(agents.words("acp:large"), "", agents.environment);
  expect(code).toBe(125);
  expect(stdout).toMatch(/crashed: .*, 0\.00 USD, changes not collected/);
  expect(stderr).toContain("code: too_large");
  const [, told = ""] = /kept, stopped; its files: (slipway .*) <to>\n/.exec(stderr) ?? [];
  const out = join(agents.project, "out");
  for (const [, verb = "", name = ""] of told.matchAll(/slipway sandbox (\w+) (\S+)/g)) {
    const argv = ["sandbox", verb, name, ...(verb === "cp" ? [out] : [])];
    expect(await bin.run(argv)).toMatchObject({ code: 0 });
  }
  expect((await stat(join(out, "large"))).size).toBe(40_000_000);
  await bin.run(["sandbox", "rm", "--all"]);
});

it("a sandbox that ends under its agent is kept, too, and the result says so", async () => {
  await using agents = await openAgents({ endless: "setInterval(() => {}, 1000);" });
  const child = bin.start([...agents.words("acp:endless"), "--json"], agents.environment);
  child.stdin.end();
  let stdout = "";
  let stopped: Promise<BinRun> | undefined;
  child.stdout.on("data", (data) => {
    stdout += data;
    stopped ??= bin.run(["sandbox", "stop", "sbx_"]);
  });
  const closed = new Promise((resolve) => child.on("close", resolve));
  const [stderr, code] = await Promise.all([text(child.stderr), closed]);
  expect(await stopped).toMatchObject({ code: 0 });
  expect({ code, stderr }).toMatchObject({ code: 125, stderr: expect.stringContaining("sandbox_not_running") });
  const { result } = JSON.parse(stdout.trimEnd().split("\n").at(-1) ?? "");
  expect(result).toMatchObject({ reason: "runner_lost", costUsd: 0, applied: false, patch: null });
  expect(await bin.run(["sandbox", "start", result.sandbox])).toMatchObject({ code: 0 });
});
