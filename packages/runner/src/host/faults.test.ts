import type { RunEndReason } from "@slipway/contract";
import { demo, faultOf, loop, type ScriptedProgram } from "@slipway/gateway/scripted";
import { run as command, type Sandbox } from "@slipway/sandbox";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { agentTestMs, drivers, openSite, type Site, toEnd } from "./testing/site.ts";

vi.setConfig({ testTimeout: agentTestMs });

/** What goes wrong at the model, and how the run is then said to have ended. */
const faults: readonly (readonly [string, readonly RunEndReason[]])[] = [
  ["429", ["rate_limited"]],
  ["500", ["overloaded"]],
  ["hang", ["network", "overloaded"]],
  ["hangStream", ["truncated", "network"]],
  ["reset", ["network"]],
  ["cut", ["truncated"]],
  ["endEarly", ["truncated"]],
  ["invalidJson", ["protocol", "truncated"]],
  ["refusal", ["refused"]],
];

/** Fails for as long as the conversation has the order for it: some agents answer a fault with words of their own. */
const faulty: ScriptedProgram = async (request) => {
  const texts = request.request.messages.flatMap(({ parts }) =>
    parts.flatMap((part) => (part.type === "text" ? [part.text] : [])),
  );
  const program = texts.some((text) => text.includes("without end")) ? loop : demo;
  return { ...(await program(request)), ...faultOf(texts.join("\n")) };
};

let site: Site;
beforeAll(async () => {
  site = await openSite({ programs: { faulty }, model: "scripted/faulty", silenceMs: 5000 });
});
afterAll(() => site[Symbol.asyncDispose]());

const limits = { totalMs: 200_000, idleMs: 100_000, maxSteps: 30, maxRepeats: 3 };

describe.concurrent.each(drivers)("with %s", (agent) => {
  it.each(faults)("the fault %s ends the run as %s, and nothing of it is left", async (fault, reasons) => {
    await using sandbox = await site.sandbox(agent);
    await using run = await site.start(sandbox, { task: { agent, prompt: `Say hello [fault:${fault}]`, limits } });
    const { events, end } = await toEnd(run);
    expect(reasons, JSON.stringify({ end, last: events.slice(-3) })).toContain(end.reason);
    const { reservedMicroUsd, spentMicroUsd } = await run.balance();
    expect(reservedMicroUsd).toBe(0);
    if (["429", "500", "reset"].includes(fault)) expect(spentMicroUsd).toBe(0);
    await expectNothingLeft(sandbox);
  });

  it("an agent that does the same again and again ends as looping", async () => {
    await using sandbox = await site.sandbox(agent);
    await using run = await site.start(sandbox, { task: { agent, prompt: "Work without end", limits } });
    expect((await toEnd(run)).end).toMatchObject({ reason: "looping" });
    await expectNothingLeft(sandbox);
  });
});

async function expectNothingLeft(sandbox: Sandbox): Promise<void> {
  const { stdout } = await command(sandbox, "ps -e -o args=");
  expect(stdout).not.toMatch(/runner\.mjs|claude|codex|opencode/);
}
