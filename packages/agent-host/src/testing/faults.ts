import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { EndReason } from "@slipway/contract";
import { demo, faultOf, loop, type ScriptedProgram, type ScriptedRequest } from "@slipway/gateway/scripted";
import { run as command, type Sandbox } from "@slipway/sandbox";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import type { Run } from "../start.ts";
import { agentTestMs, openSite, type Site, toEnd } from "./site.ts";

/** What goes wrong at the model, and how the run is then said to have ended. */
const faults = {
  "429": ["rate_limited"],
  "500": ["overloaded"],
  hang: ["network", "overloaded"],
  hangStream: ["truncated", "network"],
  reset: ["network"],
  cut: ["truncated"],
  endEarly: ["truncated"],
  invalidJson: ["protocol", "truncated"],
  refusal: ["refused"],
} as const satisfies Readonly<Record<string, readonly EndReason[]>>;

export type Fault = keyof typeof faults;
export const allFaults = Object.keys(faults) as Fault[];

/** Tried twice by the gateway, since they cost nothing. */
const free: readonly string[] = ["429", "500", "reset"];

/** Fails for as long as the conversation has the order for it: some agents answer a fault with words of their own. */
const faulty: ScriptedProgram = async (request) => {
  const texts = request.request.messages.flatMap(({ parts }) =>
    parts.flatMap((part) => (part.type === "text" ? [part.text] : [])),
  );
  const program = texts.some((text) => text.includes("without end")) ? loop : demo;
  return { ...(await program(request)), ...faultOf(texts.join("\n")) };
};

let site: Site;
/** What the model was asked. */
const asked: string[] = [];

const limits = { totalMs: 250_000, idleMs: 150_000, maxSteps: 30, maxRepeats: 3 };

/** Shows for each agent how its run ends under each of its faults. */
export function testFaults(cases: readonly (readonly [agent: string, faults: readonly Fault[]])[]): void {
  vi.setConfig({ testTimeout: agentTestMs });
  beforeAll(async () => {
    const onRequest = ({ request }: ScriptedRequest) => void asked.push(JSON.stringify(request.messages));
    site = await openSite({ programs: { faulty }, model: "scripted/faulty", silenceMs: 2000, onRequest });
  });
  afterAll(() => site[Symbol.asyncDispose]());
  describe.concurrent.each(cases)("with %s", (agent, those) => {
    it.each(those.map((fault) => [fault, faults[fault]] as const))(
      "the fault %s ends the run as %s, is paid once, and leaves nothing",
      (fault, reasons) => expectEnd(agent, fault, reasons),
    );
  });
}

/** An agent that does the same again and again. */
export function testLoops(agents: readonly string[]): void {
  it.concurrent.each(agents)("with %s a loop ends the run as looping, and leaves nothing", async (agent) => {
    await using sandbox = await site.sandbox(agent);
    await using run = await site.start(sandbox, { task: { agent, prompt: "Work without end", limits } });
    expect((await toEnd(run)).end).toMatchObject({ reason: "looping" });
    await expectNothingLeft(sandbox);
  });
}

async function expectEnd(agent: string, fault: string, reasons: readonly EndReason[]): Promise<void> {
  const prompt = `Say hello to ${agent} [fault:${fault}]`;
  await using sandbox = await site.sandbox(agent);
  await using run = await site.start(sandbox, { task: { agent, prompt, limits } });
  const { events, end } = await toEnd(run);
  expect(reasons, JSON.stringify({ end, last: events.slice(-3) })).toContain(end.reason);
  await expectCountedOnce(run, { fault, times: asked.filter((messages) => messages.includes(prompt)).length });
  await expectNothingLeft(sandbox);
}

/**
 * Every question to the model is in the books, no question twice, and their sum is what the run has spent. Of one that was
 * on its way when the run ended, the model need not have heard.
 */
async function expectCountedOnce(run: Run, { fault, times }: { readonly fault: string; readonly times: number }) {
  const lines = (await readFile(join(site.directory, "ledger", "ledger.jsonl"), "utf8")).trim().split("\n");
  const entries = lines.map((line) => JSON.parse(line)).filter((entry) => entry.run === run.id);
  const settled = entries.filter(({ type }) => type === "settle");
  const requests = settled.map(({ request }) => request);
  expect(requests.length).toBeGreaterThan(0);
  expect(new Set(requests).size).toBe(requests.length);
  const heard = settled.filter(({ end }) => end !== "cut").length;
  const tries = free.includes(fault) ? 2 : 1;
  expect(times).toBeGreaterThanOrEqual(heard * tries);
  expect(times).toBeLessThanOrEqual(requests.length * tries);
  const spentMicroUsd = settled.reduce((sum, { microUsd }) => sum + microUsd, 0);
  expect(await run.balance()).toMatchObject({ reservedMicroUsd: 0, spentMicroUsd });
  expect(spentMicroUsd > 0).toBe(!free.includes(fault));
}

async function expectNothingLeft(sandbox: Sandbox): Promise<void> {
  const { stdout } = await command(sandbox, "ps -e -o args=");
  expect(stdout).not.toMatch(/runner\.mjs|claude|codex|gemini|opencode/);
}
