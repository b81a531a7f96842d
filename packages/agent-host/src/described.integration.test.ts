import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describeFixture, installFixture } from "@slipway/runner/testing/acp";
import { readText, run } from "@slipway/sandbox";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { agentTestMs, openSite, type Site, toEnd } from "./testing/site.ts";

vi.setConfig({ testTimeout: agentTestMs });

const ends = { exit: "crashed", die: "crashed", babble: "stuck", deaf: "stuck" } as const;

let site: Site;
let moreAgents: string;
beforeAll(async () => {
  moreAgents = await mkdtemp(join(tmpdir(), "described-"));
  for (const mode of ["model", ...Object.keys(ends)]) await installFixture(moreAgents, mode, describeFixture(mode));
  await installFixture(moreAgents, "absent", { ...describeFixture("model"), command: ["not-there"] });
  const model = "scripted/parrot";
  site = await openSite({ programs: { parrot: ({ lastPrompt }) => ({ text: lastPrompt }) }, model, moreAgents });
});
afterAll(async () => {
  await site[Symbol.asyncDispose]();
  await rm(moreAgents, { recursive: true });
});

it("an agent that its directory describes asks its model through the gateway and writes what it said", async () => {
  const agent = "acp:model";
  await using sandbox = await site.sandbox(agent);
  const task = { agent, prompt: "Say hello", context: "Speak softly." };
  await using started = await site.start(sandbox, { task });
  expect((await toEnd(started)).end).toMatchObject({ reason: "completed" });
  // It has no other place for what all agents are told.
  expect(await readText(sandbox.files, "/workspace/answer.txt")).toBe("Speak softly.\n\nSay hello");
  expect((await started.balance()).spentMicroUsd).toBeGreaterThan(0);
});

it("a refusal of the gateway ends the run of such an agent", async () => {
  const agent = "acp:model";
  await using sandbox = await site.sandbox(agent);
  await using started = await site.start(sandbox, { task: { agent, prompt: "Say hello" }, budgetMicroUsd: 0 });
  expect((await toEnd(started)).end).toMatchObject({ reason: "budget" });
});

it.each(Object.entries(ends))("an agent that does %s ends as %s and leaves no process", async (mode, reason) => {
  const agent = `acp:${mode}`;
  await using sandbox = await site.sandbox(agent);
  const limits = reason === "stuck" ? { idleMs: 3_000 } : {};
  await using started = await site.start(sandbox, { task: { agent, prompt: "Begin", limits } });
  expect((await toEnd(started)).end).toMatchObject({ reason });
  expect((await run(sandbox, "ps -e -o args=")).stdout).not.toMatch(/runner\.mjs|agent\.mjs/);
});

it("an agent whose program is missing ends its run with the program's name", async () => {
  const agent = "acp:absent";
  await using sandbox = await site.sandbox(agent);
  await using started = await site.start(sandbox, { task: { agent, prompt: "Begin" } });
  const { end } = await toEnd(started);
  expect(end).toMatchObject({ message: expect.stringMatching(/component_missing: There is no not-there/) });
});
