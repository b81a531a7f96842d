import { mkdir, mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { type Bin, openBin, repository } from "../testing/bin.ts";

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

it("an agent that its directory describes runs by its name, and how it fails is told", async () => {
  const project = await mkdtemp(join(tmpdir(), "agent-run-"));
  const agents = await mkdtemp(join(tmpdir(), "agents-"));
  await mkdir(join(agents, "ours"));
  await writeFile(join(agents, "ours", "agent.mjs"), 'console.error("no licence"); process.exit(3);');
  const description = { command: ["agent.mjs"], environment: { URL: "{base_url}", API_KEY: "{token}" } };
  await writeFile(join(agents, "ours", "agent.json"), JSON.stringify(description));
  const words = ["--dir", project, "--model", "scripted/demo", "Say hello"];
  const run = (agent: string) => bin.run(["agent", "run", "--agent", agent, ...words], "", { SLIPWAY_AGENTS: agents });
  const ran = await run("acp:ours");
  expect(ran).toMatchObject({ code: 1, stdout: expect.stringMatching(/crashed: .*exit code 3\. no licence, /) });
  const unknown = await run("acp:emacs");
  expect(unknown.stderr).toMatch(/acp:codex.*acp:ours.*code: unknown_agent/s);
  for (const directory of [project, agents]) await rm(directory, { recursive: true });
});
