import { isSideCall, type ScriptedProgram, sideAnswer } from "@slipway/gateway/scripted";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { agentTestMs, drivers, openSite, type Site, toEnd } from "./testing/site.ts";

vi.setConfig({ testTimeout: agentTestMs });

const budgetMicroUsd = 100_000;
/** Cheap to ask, for agents ask at length, and dear to answer. */
const price = { input: 0.1, output: 50, cacheRead: 0.1, cacheWrite: 0.1, maxOutputTokens: 32_000 };
/** What is set aside for an answer that has not come: 1,024 tokens, and the longest request. */
const reservedMicroUsd = 1024 * price.output + 10_000;

/** Works on for as long as it is paid. */
const busy: ScriptedProgram = (request) => {
  if (isSideCall(request)) return sideAnswer(request);
  return { text: "I go on.", actions: [{ run: `echo step ${request.step}` }], usage: { output: 400 } };
};
/** One answer that no such budget covers, at the pace of a model: what has come is spent. */
const wordy: ScriptedProgram = (request) =>
  isSideCall(request) ? sideAnswer(request) : { text: "And another word. ".repeat(5000), paceMs: 5 };

let site: Site;
beforeAll(async () => {
  const programs: Record<string, ScriptedProgram> = {
    dear: (request) => (request.prompt.includes("at length") ? wordy : busy)(request),
  };
  const prices = { "scripted/dear": { ...price, hiddenThinking: "never" } };
  site = await openSite({ programs, model: "scripted/dear", prices });
});
afterAll(() => site[Symbol.asyncDispose]());

describe.each(drivers)("with %s", (agent) => {
  it.each([
    ["many answers", "Work step by step"],
    ["one long answer", "Explain at length"],
  ])("a run that spends its budget on %s ends as budget, and has not spent more", async (_, prompt) => {
    await using sandbox = await site.sandbox(agent);
    await using run = await site.start(sandbox, { task: { agent, prompt }, budgetMicroUsd });
    const { events, end } = await toEnd(run);
    expect(end, JSON.stringify(events.slice(-3))).toMatchObject({ reason: "budget" });
    const balance = await run.balance();
    expect(balance).toMatchObject({ budgetMicroUsd, reservedMicroUsd: 0 });
    expect(balance.spentMicroUsd).toBeGreaterThan(budgetMicroUsd - reservedMicroUsd);
    expect(balance.spentMicroUsd).toBeLessThanOrEqual(budgetMicroUsd + reservedMicroUsd);
  });
});
