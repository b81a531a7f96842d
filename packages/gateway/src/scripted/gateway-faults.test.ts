import type { ErrorCode } from "@slipway/contract";
import { describe, expect, test } from "vitest";
import type { ResponseEnd } from "../deliver/health.ts";
import type { ModelEvent } from "../dialects/conversation.ts";
import type { DialectName } from "../dialects/dialect.ts";
import { dialects } from "../dialects/index.ts";
import type { Timeouts } from "../settings/settings.ts";
import type { Fault, Turn } from "./program.ts";
import { modelRequest } from "./testing/conversation.ts";
import { type ScriptedGateway, startScriptedGateway } from "./testing/scripted-gateway.ts";

const turn = {
  text: "This answer is long enough to be cut in the middle.",
  usage: { input: 100, output: 20 },
  paceMs: 1,
};
/** At 1 USD and 5 USD for a million tokens. */
const costOfTurn = 100 * 1 + 20 * 5;

interface Seen {
  readonly status: number;
  readonly events: readonly ModelEvent[];
  /** Of a response that is an error as a whole. */
  readonly error: unknown;
}

/** What a fault comes to. */
interface Outcome {
  readonly status: number;
  readonly code: ErrorCode;
  readonly end: ResponseEnd;
  readonly tries: number;
}

const pairs: [agent: DialectName, endpoint: DialectName][] = [
  ["anthropic", "anthropic"],
  ["chat", "chat"],
  ["responses", "responses"],
  ["anthropic", "chat"],
  ["chat", "responses"],
  ["responses", "anthropic"],
];

describe.concurrent.each(pairs)("an agent that speaks %s to an endpoint that speaks %s", (agent, endpoint) => {
  const start = (turn: Turn) =>
    startScriptedGateway({ program: () => turn, endpoint, timeouts: limitsFor(turn.fault) });

  const refusals: [fault: Fault, outcome: Outcome][] = [
    [
      { status: 429, retryAfterMs: 0 },
      { status: 429, code: "model_rate_limited", end: "failed", tries: 3 },
    ],
    [{ status: 500 }, { status: 529, code: "model_overloaded", end: "failed", tries: 3 }],
    [{ status: 529 }, { status: 529, code: "model_overloaded", end: "failed", tries: 3 }],
    [{ status: 401 }, { status: 502, code: "model_key_refused", end: "failed", tries: 1 }],
    [{ status: 400 }, { status: 400, code: "model_refused", end: "failed", tries: 1 }],
    ["reset", { status: 502, code: "model_unreachable", end: "failed", tries: 3 }],
    ["hang", { status: 504, code: "model_timeout", end: "failed", tries: 1 }],
  ];
  describe.each([true, false])("streamed: %j", (stream) => {
    test.each(refusals)("%j before an answer", async (fault, outcome) => {
      await using gateway = await start({ ...turn, fault });
      const seen = await ask(gateway, agent, stream);
      expect(seen).toMatchObject({ status: outcome.status, error: { error: { message: errorWith(outcome.code) } } });
      await expectAccount(gateway, outcome);
    });

    test("a refusal of the model is an answer, and is billed", async () => {
      await using gateway = await start({ ...turn, fault: "refusal" });
      const { events } = await ask(gateway, agent, stream);
      expect(events).toContainEqual({ type: "stop", reason: "refusal" });
      expect(await gateway.calls.balance()).toMatchObject({ spentMicroUsd: costOfTurn, reservedMicroUsd: 0 });
      expect(gateway.health()).toMatchObject({ requests: 1, inFlight: 0, ends: { complete: 1 } });
    });
  });

  const broken: [fault: Fault, outcome: Pick<Outcome, "code" | "end">][] = [
    ["cut", { code: "stream_truncated", end: "truncated" }],
    ["endEarly", { code: "stream_truncated", end: "truncated" }],
    ["hangStream", { code: "model_timeout", end: "truncated" }],
    ["invalidJson", { code: endpoint === agent ? "stream_truncated" : "invalid_answer", end: "truncated" }],
    ["failure", { code: "model_overloaded", end: "failed" }],
  ];
  test.each(broken)("%s in the middle of a stream is a failure, never an end", async (fault, outcome) => {
    await using gateway = await start({ ...turn, fault });
    const { status, events } = await ask(gateway, agent, true);
    expect(status).toBe(200);
    expect(textOf(events)).toMatch(/^This answer/);
    expect(events.some(({ type }) => type === "stop")).toBe(false);
    expect(events.at(-1)?.type).toBe("failure");
    await expectAccount(gateway, { ...outcome, tries: 1 });
    expect((await gateway.calls.balance()).spentMicroUsd).toBeGreaterThan(0);
  });

  const halves: [fault: Fault, outcome: Outcome][] = [
    ["cut", { status: 502, code: "stream_truncated", end: "truncated", tries: 1 }],
    ["endEarly", { status: 502, code: "invalid_answer", end: "truncated", tries: 1 }],
    ["hangStream", { status: 504, code: "model_timeout", end: "truncated", tries: 1 }],
    ["invalidJson", { status: 502, code: "invalid_answer", end: "truncated", tries: 1 }],
    ["failure", { status: 529, code: "model_overloaded", end: "failed", tries: 3 }],
  ];
  test.each(halves)("%s in the middle of a whole answer is an error", async (fault, outcome) => {
    await using gateway = await start({ ...turn, fault });
    const seen = await ask(gateway, agent, false);
    expect(seen).toMatchObject({ status: outcome.status, error: { error: { message: errorWith(outcome.code) } } });
    await expectAccount(gateway, outcome);
  });

  test("what fails twice and then works is answered and billed once", async () => {
    await using gateway = await start({ ...turn, fault: { status: 529 }, faultTries: 2 });
    const { events } = await ask(gateway, agent, true);
    expect(textOf(events)).toBe(turn.text);
    expect(events).toContainEqual({ type: "stop", reason: "end" });
    expect(await gateway.calls.balance()).toMatchObject({ spentMicroUsd: costOfTurn, reservedMicroUsd: 0 });
    expect(gateway.health()).toMatchObject({ requests: 1, inFlight: 0, retries: 2, ends: { complete: 1 } });
    expect(gateway.asked).toHaveLength(3);
  });
});

/** Short where the limit is what happens, and longer than anything takes where it is not. */
function limitsFor(fault: Fault | undefined): Partial<Timeouts> {
  return fault === "hang" ? { firstByteMs: 1000 } : fault === "hangStream" ? { idleMs: 1000 } : {};
}

async function ask(gateway: ScriptedGateway, dialect: DialectName, stream: boolean): Promise<Seen> {
  const { path, writeRequest, readResponse } = dialects[dialect];
  const response = await fetch(`${gateway.baseUrl}${path}`, {
    method: "POST",
    headers: { authorization: `Bearer ${gateway.calls.token}` },
    body: JSON.stringify(writeRequest(modelRequest({ model: "build", stream }))),
  });
  if (response.status !== 200) return { status: response.status, events: [], error: await response.json() };
  const events = stream ? await streamedEvents(dialect, response) : readResponse(await response.json());
  return { status: 200, events, error: undefined };
}

/** As far as an agent can read: a line that is no JSON is as much of a failure as one that says so. */
async function streamedEvents(dialect: DialectName, response: Response): Promise<ModelEvent[]> {
  const reader = dialects[dialect].streamReader();
  const events: ModelEvent[] = [];
  const chunks: Uint8Array[] = [];
  await Array.fromAsync(response.body ?? [], (chunk) => chunks.push(chunk)).catch(() => undefined);
  try {
    for (const chunk of chunks) for (const event of reader.push(chunk)) events.push(event);
  } catch (error) {
    events.push({ type: "failure", status: 0, message: String(error) });
  }
  return events;
}

/** One entry in the books, one line in the log, and counters that agree with both. */
async function expectAccount(gateway: ScriptedGateway, { code, end, tries }: Omit<Outcome, "status">): Promise<void> {
  const balance = await gateway.calls.balance();
  expect(gateway.lines).toMatchObject([{ code, end, retries: tries - 1 }]);
  expect(gateway.lines[0]?.microUsd).toBeCloseTo(balance.spentMicroUsd);
  expect(balance.reservedMicroUsd).toBe(0);
  expect(gateway.calls.lastResponse()).toMatchObject({ code, end });
  expect(gateway.asked).toHaveLength(tries);
  expect(gateway.health()).toMatchObject({
    requests: 1,
    inFlight: 0,
    retries: tries - 1,
    ends: { complete: 0, truncated: 0, cut: 0, failed: 0, [end]: 1 },
    microUsd: balance.spentMicroUsd,
    lastErrorCode: code,
  });
}

function errorWith(code: ErrorCode) {
  return expect.stringContaining(`[${code}]`);
}

function textOf(events: readonly ModelEvent[]): string {
  return events.map((event) => (event.type === "text" ? event.text : "")).join("");
}
