import { EventEmitter, once } from "node:events";
import { newId } from "@slipway/contract";
import { expect, test } from "vitest";
import { createMemoryLedger } from "../journal/ledger.ts";
import type { Ledger } from "../ports/ports.ts";
import type { ModelPrice } from "../settings/prices.ts";
import { ask, startTestGateway, type TestGateway } from "../testing/gateway.ts";
import { type Behaviour, hang, speak, speakThen } from "../testing/upstream.ts";
import { reserve } from "./budget.ts";
import { createEstimates } from "./estimates.ts";
import { estimateInputTokens } from "./request-cost.ts";

const long = "A sentence of some words. ".repeat(400);
/** What the first reservation of a small streamed request comes to, at most. */
const firstSlice = 1024 * 15 + 1000;

test("a request that the budget can not cover is refused before anything is sent", async () => {
  await using set = await startTestGateway({ budgetMicroUsd: 1000 });
  const { status, text, headers } = await set.post("/v1/messages", ask());
  expect(status).toBe(402);
  expect(text).toContain("budget_exhausted");
  expect(headers["x-should-retry"]).toBe("false");
  expect(set.upstream.seen).toHaveLength(0);
  expect(await set.run.ranOut()).toBe(true);
  expect(await set.run.balance()).toEqual({ budgetMicroUsd: 1000, spentMicroUsd: 0, reservedMicroUsd: 0 });
});

test("a run has not run out of money because one request is too dear", async () => {
  await using set = await startTestGateway({ budgetMicroUsd: 1_000_000 });
  expect(set.run.hadUnpayable()).toBe(false);
  expect(await set.post("/v1/messages", ask({ system: "x".repeat(4_000_000) }))).toMatchObject({ status: 402 });
  expect(set.run.hadUnpayable()).toBe(true);
  expect(await set.run.ranOut()).toBe(false);
});

test("a run has run out of money when it can not pay for what it has paid for before", async () => {
  const long = { system: "word ".repeat(40_000) };
  await using set = await startTestGateway({ budgetMicroUsd: 400_000 });
  set.upstream.behave(speak({ usage: { input: 45_000, output: 20, cacheRead: 0, cacheWrite: 0 } }));
  expect(await set.post("/v1/messages", ask(long))).toMatchObject({ status: 200 });
  expect(await set.post("/v1/messages", ask(long))).toMatchObject({ status: 200 });
  expect(await set.post("/v1/messages", ask(long))).toMatchObject({ status: 402 });
  expect(await set.run.ranOut()).toBe(true);
});

test("a run that thinks has run out of money when it can not pay for as many thoughts again", async () => {
  const system = "word ".repeat(40_000);
  const thinking = { system, max_tokens: 8000, thinking: { type: "enabled", budget_tokens: 6500 } };
  await using set = await startTestGateway({ budgetMicroUsd: 430_000 });
  set.upstream.behave(speak({ usage: { input: 45_000, output: 20, cacheRead: 0, cacheWrite: 0 } }));
  expect(await set.post("/v1/messages", ask(thinking))).toMatchObject({ status: 200 });
  expect(await set.post("/v1/messages", ask(thinking))).toMatchObject({ status: 402 });
  expect(await set.run.ranOut()).toBe(true);
});

test("what is reserved for requests under way is waited for before a run has run out of money", async () => {
  await using set = await startTestGateway({ budgetMicroUsd: 200_000 });
  const asked = Promise.withResolvers<void>();
  set.upstream.behave(() => asked.resolve());
  const leaving = new AbortController();
  const { signal } = leaving;
  const under = set.post("/v1/messages", ask({ max_tokens: 8000, stream: false }), { signal }).catch(() => {});
  await asked.promise;
  const ranOut = set.run.ranOut();
  leaving.abort();
  await under;
  expect(await ranOut).toBe(false);
});

test("a raised budget lets the run go on, a lowered one changes nothing", async () => {
  await using set = await startTestGateway({ budgetMicroUsd: 1000 });
  expect(await set.post("/v1/messages", ask())).toMatchObject({ status: 402 });
  await set.run.raiseBudget(1_000_000);
  await set.run.raiseBudget(10);
  expect(await set.post("/v1/messages", ask())).toMatchObject({ status: 200 });
});

test("a whole answer is covered whole, up to the model's limit, or held to what the budget covers", async () => {
  await using set = await startTestGateway({ budgetMicroUsd: 4096 * 15 });
  const ofLimit = (max_tokens: number) => set.post("/v1/messages", ask({ stream: false, max_tokens }));
  expect(await ofLimit(1_000_000)).toMatchObject({ status: 402 });
  await set.run.raiseBudget(5000 * 15);
  expect(await ofLimit(1_000_000)).toMatchObject({ status: 200 });
  expect(await ofLimit(100)).toMatchObject({ status: 200 });
  const [lowered, small] = set.upstream.seen.map(({ body }) => body["max_tokens"]);
  expect(lowered).toBeLessThan(5000);
  expect(small).toBe(100);
});

test("a limit in a field that does not count in the dialect counts for nothing", async () => {
  await using set = await startTestGateway({ budgetMicroUsd: 4000 * 15, dialects: ["anthropic", "chat", "responses"] });
  const statusOf = async (path: string, body: object) => (await set.post(path, ask({ stream: false, ...body }))).status;
  expect(await statusOf("/v1/messages", { max_tokens: 8000, max_output_tokens: 1 })).toBe(402);
  expect(await statusOf("/v1/responses", { input: "Go.", max_tokens: 1 })).toBe(402);
  expect(await statusOf("/v1/chat/completions", { max_tokens: 1, max_completion_tokens: 8000 })).toBe(402);
  expect(await statusOf("/v1/chat/completions", { max_tokens: 1 })).toBe(200);
});

test("a stream that passes the budget is cut", async () => {
  await using set = await startTestGateway({ budgetMicroUsd: firstSlice + 1024 * 15 });
  const client = createReader();
  set.upstream.behave(speak({ texts: [long, long, long, long, long], gate: client.has }));
  const { status, text, broken } = await set.post("/v1/messages", ask({ max_tokens: 8000 }), client);
  expect({ status, broken }).toEqual({ status: 200, broken: true });
  expect(text).toContain("budget_exhausted");
  expect(set.run.lastResponse()).toMatchObject({ end: "cut", code: "budget_exhausted" });
  const { budgetMicroUsd, spentMicroUsd, reservedMicroUsd } = await set.run.balance();
  expect(reservedMicroUsd).toBe(0);
  // A text comes before it is counted.
  expect(spentMicroUsd).toBeGreaterThan(budgetMicroUsd / 2);
  expect(spentMicroUsd).toBeLessThan(budgetMicroUsd + long.length * 15);
});

test("where the money ends a stream is cut, though its endpoint is held to a limit", async () => {
  const ledger = createMemoryLedger();
  const run = newId("run");
  const price: ModelPrice = {
    input: 3,
    output: 15,
    cacheRead: 0.3,
    cacheWrite: 3.75,
    maxOutputTokens: 64_000,
    hiddenThinking: "never",
  };
  await ledger.open(run, 5000 * 15);
  const asked = { run, price, inputTokens: 0, mostInputTokens: 0, maxOutputTokens: undefined, hiddenTokens: 0 };
  const { signal } = new AbortController();
  using held = await reserve(ledger, { ...asked, estimates: createEstimates(), signal, streamed: true });
  expect(held.lowerLimit).toBe(5000);
  await held.extend(5000);
  expect([held.covers(5000), held.covers(5001)]).toEqual([true, false]);
  await expect(held.extend(5001)).rejects.toMatchObject({ code: "budget_exhausted" });
});

test("a stream reserves its output slice by slice", async () => {
  await using set = await startTestGateway();
  const client = createReader();
  const reserved: number[] = [];
  const gate = async (sent: number) => {
    await client.has(sent);
    reserved.push((await set.run.balance()).reservedMicroUsd);
  };
  set.upstream.behave(speak({ texts: [long, long, long], gate }));
  await set.post("/v1/messages", ask({ max_tokens: 8000 }), client);
  expect(reserved).toEqual([...new Set(reserved)].sort((a, b) => a - b));
  expect(await set.run.balance()).toMatchObject({ spentMicroUsd: 759, reservedMicroUsd: 0 });
});

/** A client that tells how many of the long texts it has. */
function createReader() {
  const events = new EventEmitter();
  let count = 0;
  return {
    onData(text: string) {
      count = text.split(long).length - 1;
      events.emit("data");
    },
    async has(wanted: number) {
      while (count < wanted) await once(events, "data");
    },
  };
}

test("many requests at once never overspend together", async () => {
  const budgetMicroUsd = 5 * firstSlice;
  await using set = await startTestGateway({ budgetMicroUsd });
  set.upstream.behave(speak({ usage: { input: 100, output: 1000, cacheRead: 0, cacheWrite: 0 } }));
  const answers = await Promise.all(Array.from({ length: 60 }, () => set.post("/v1/messages", ask())));
  const statuses = answers.map(({ status }) => status);
  expect(new Set(statuses)).toEqual(new Set([200, 402]));
  const { spentMicroUsd, reservedMicroUsd } = await set.run.balance();
  expect(reservedMicroUsd).toBe(0);
  expect(spentMicroUsd).toBe(statuses.filter((status) => status === 200).length * 15_300);
  expect(spentMicroUsd).toBeLessThanOrEqual(budgetMicroUsd);
});

test("what is reserved is not there for others", async () => {
  await using set = await startTestGateway({ budgetMicroUsd: firstSlice });
  const client = new AbortController();
  set.upstream.behave(speakThen(() => {}));
  const first = Promise.withResolvers<void>();
  const streaming = set.post("/v1/messages", ask(), { signal: client.signal, onData: () => first.resolve() });
  await first.promise;
  expect(await set.post("/v1/messages", ask())).toMatchObject({ status: 402 });
  client.abort();
  await streaming.catch(() => {});
});

test("requests whose client goes away before an answer are not for nothing", async () => {
  await using set = await startTestGateway({ budgetMicroUsd: firstSlice });
  for (let i = 1; i <= 3; i++) {
    const client = new AbortController();
    set.upstream.behave((response, request) => {
      hang(response, request);
      client.abort();
    });
    await set.post("/v1/messages", ask(), { signal: client.signal }).catch(() => {});
    await set.settled(i);
  }
  const { spentMicroUsd } = await set.run.balance();
  expect(spentMicroUsd).toBeGreaterThan(0);
});

test.each([
  ["is not streamed", { stream: false }],
  ["is thought about unseen", { thinking: { type: "adaptive" } }],
])("an answer that %s and is given up is billed by the time it took", async (_, body) => {
  await using set = await startTestGateway();
  const client = new AbortController();
  set.upstream.behave((response, request) => {
    hang(response, request);
    setTimeout(() => client.abort(), 200);
  });
  await set.post("/v1/messages", ask({ max_tokens: 8000, ...body }), { signal: client.signal }).catch(() => {});
  await set.settled();
  expect(set.lines).toMatchObject([{ end: "cut", estimated: true }]);
  expect(set.lines[0]?.usage.output).toBeGreaterThanOrEqual(50);
  expect(set.lines[0]?.usage.output).toBeLessThanOrEqual(8000);
});

test("an endpoint that does not count is billed by estimate", async () => {
  await using set = await startTestGateway({ dialects: ["chat"] });
  set.upstream.behave((response) => {
    const chunk = { id: "1", object: "chat.completion.chunk", model: "m" };
    const delta = { ...chunk, choices: [{ index: 0, delta: { content: long }, finish_reason: null }] };
    const last = { ...chunk, choices: [{ index: 0, delta: {}, finish_reason: "stop" }] };
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.end(`data: ${JSON.stringify(delta)}\n\ndata: ${JSON.stringify(last)}\n\ndata: [DONE]\n\n`);
  });
  expect(await set.post("/v1/chat/completions", ask({ max_tokens: 8000 }))).toMatchObject({
    status: 200,
    broken: false,
  });
  expect(set.lines).toMatchObject([{ end: "complete", estimated: true }]);
  expect(set.lines[0]?.usage.output).toBeGreaterThan(1000);
  expect(set.lines[0]?.usage.input).toBeGreaterThan(10);
});

test("what a translation leaves out does not make the rest of a request cheaper", async () => {
  await using set = await startTestGateway({ budgetMicroUsd: 100_000, dialects: ["anthropic"] });
  const text = { type: "text", text: "word ".repeat(100_000) };
  const leftOut = { type: "unknown", image_url: `data:image/png;base64,${"A".repeat(600_000)}` };
  const messages = [{ role: "user", content: [text, leftOut] }];
  expect(await set.post("/v1/chat/completions", ask({ messages }))).toMatchObject({ status: 402 });
  expect(set.upstream.seen).toHaveLength(0);
});

test("an image counts as an image, and what only looks like one as text", () => {
  const image = Buffer.alloc(300_000, 7).toString("base64");
  const tokensOf = (part: object) => {
    const body = { messages: [{ role: "user", content: [part] }] };
    return estimateInputTokens(body, JSON.stringify(body).length).inputTokens;
  };
  const url = `data:image/png;base64,${image}`;
  expect(tokensOf({ type: "image", source: { type: "base64", data: image } })).toBeLessThan(6000);
  expect(tokensOf({ type: "image_url", image_url: { url } })).toBeLessThan(6000);
  expect(tokensOf({ type: "input_image", image_url: url })).toBeLessThan(6000);
  expect(tokensOf({ type: "text", text: url })).toBeGreaterThan(100_000);
  expect(tokensOf({ type: "text", source: { type: "base64", data: image } })).toBeGreaterThan(100_000);
});

test("a small document may have many pages, and is reserved as if it had", () => {
  for (const part of [
    { type: "document", source: { type: "base64", data: "JVBERi0=" } },
    { type: "file", file: { file_data: "data:application/pdf;base64,JVBERi0=" } },
    { type: "input_file", file_data: "data:application/pdf;base64,JVBERi0=" },
  ]) {
    const body = { messages: [{ role: "user", content: [part] }] };
    expect(estimateInputTokens(body, JSON.stringify(body).length).inputTokens).toBeGreaterThan(200_000);
  }
});

/** What is reserved when the endpoint gets the next request. */
function reservedAtEndpoint({ upstream, run }: TestGateway): Promise<number> {
  return new Promise((resolve) => {
    upstream.behave(async (response, request) => {
      resolve((await run.balance()).reservedMicroUsd);
      await speak()(response, request);
    });
  });
}

const aloud = { thinking: { type: "disabled" } };
const unseen = { thinking: { type: "adaptive" } };

test("a stream whose thoughts have a stated bound is reserved with them", async () => {
  await using set = await startTestGateway({ budgetMicroUsd: 6000 * 15 });
  const bound = { thinking: { type: "enabled", budget_tokens: 7000 } };
  expect(await set.post("/v1/messages", ask({ max_tokens: 8000, ...bound }))).toMatchObject({ status: 402 });
  expect(await set.post("/v1/messages", ask({ max_tokens: 8000, ...aloud }))).toMatchObject({ status: 200 });
});

test.each([
  ["adaptive thinking", "/v1/messages", unseen],
  ["an effort", "/v1/messages", { output_config: { effort: "low" } }],
  ["an effort", "/v1/chat/completions", { reasoning_effort: "low" }],
  ["an effort beside none", "/v1/chat/completions", { reasoning_effort: "low", reasoning: { effort: "none" } }],
  ["an effort", "/v1/responses", { input: "Go.", reasoning: { effort: "minimal" } }],
])("a stream that may think unseen by %s at %s is reserved whole", async (_, path, thinking) => {
  await using set = await startTestGateway({ dialects: ["anthropic", "chat", "responses"] });
  const limit = path === "/v1/responses" ? "max_output_tokens" : "max_tokens";
  const reserved = reservedAtEndpoint(set);
  await set.post(path, ask({ [limit]: 7000, ...thinking }));
  expect(await reserved).toBeGreaterThan(7000 * 15);
});

test.each([
  ["usual", {}, 8000],
  ["usual", aloud, 1024],
  ["asked", {}, 1024],
  ["asked", unseen, 8000],
  ["never", unseen, 1024],
] as const)("where a model's hidden thinking is %s, %j reserves %i tokens", async (hiddenThinking, asked, tokens) => {
  const price = { input: 0, output: 1, cacheRead: 0, cacheWrite: 0, maxOutputTokens: 8000, hiddenThinking };
  await using set = await startTestGateway({ settings: { prices: new Map([["test/*", price]]) } });
  const reserved = reservedAtEndpoint(set);
  await set.post("/v1/messages", ask({ max_tokens: 8000, ...asked }));
  expect(await reserved).toBe(tokens);
});

test.each([
  ["/v1/messages", "max_tokens", unseen],
  ["/v1/chat/completions", "max_tokens", { reasoning_effort: "high" }],
  ["/v1/chat/completions", "max_completion_tokens", { reasoning_effort: "high" }],
  ["/v1/responses", "max_output_tokens", { input: "Go.", reasoning: { effort: "high" } }],
])("at %s an unseen thinker with %s is held to what the budget still covers", async (path, field, thinking) => {
  await using set = await startTestGateway({
    budgetMicroUsd: 5000 * 15,
    dialects: ["anthropic", "chat", "responses"],
  });
  expect(await set.post(path, ask({ max_tokens: undefined, [field]: 8000, ...thinking }))).toMatchObject({
    status: 200,
  });
  const limit = set.upstream.seen[0]?.body[field];
  expect(limit).toBeGreaterThan(4096);
  expect(limit).toBeLessThan(5000);
});

test("agents that think unseen can not overspend together", async () => {
  const budgetMicroUsd = 20_000 * 15;
  await using set = await startTestGateway({ budgetMicroUsd });
  // The endpoint bills all that the limit allows, and shows one word.
  set.upstream.behave((response, request) => {
    const output = Number(request.body["max_tokens"]);
    speak({ usage: { input: 10, output, cacheRead: 0, cacheWrite: 0 } })(response, request);
  });
  const answers = await Promise.all(
    Array.from({ length: 20 }, () => set.post("/v1/messages", ask({ max_tokens: 8000, ...unseen }))),
  );
  const taken = answers.filter(({ status }) => status === 200).length;
  expect(taken).toBeGreaterThanOrEqual(2);
  expect(taken).toBeLessThan(5);
  const { spentMicroUsd, reservedMicroUsd } = await set.run.balance();
  expect(reservedMicroUsd).toBe(0);
  expect(spentMicroUsd).toBeLessThanOrEqual(budgetMicroUsd);
});

/** Sends all that the limit allows at once, and bills it. */
const burst: Behaviour = (response, request) => {
  const output = Number(request.body["max_tokens"]);
  const usage = { input: 10, output, cacheRead: 0, cacheWrite: 0 };
  return speak({ texts: ["word ".repeat(output)], usage, stop: "max_tokens" })(response, request);
};

test.each([true, false])(
  "an answer that comes at once (streamed: %s) is no longer than the run can pay for",
  async (stream) => {
    const budgetMicroUsd = 100_000;
    await using set = await startTestGateway({ budgetMicroUsd });
    set.upstream.behave(burst);
    // It would come to 120,000.
    expect(await set.post("/v1/messages", ask({ max_tokens: 8000, stream }))).toMatchObject({ status: 200 });
    const { spentMicroUsd, reservedMicroUsd } = await set.run.balance();
    expect(reservedMicroUsd).toBe(0);
    expect(spentMicroUsd).toBeGreaterThan(budgetMicroUsd - 1000);
    expect(spentMicroUsd).toBeLessThanOrEqual(budgetMicroUsd);
    expect(set.run.lastResponse()).toMatchObject({ end: "cut", code: "budget_exhausted" });
  },
);

test.each([8000, 3000, 1000])(
  "20 answers of up to %i tokens, each of which comes at once, pass the budget by one at most",
  async (max_tokens) => {
    const [budgetMicroUsd, count] = [100_000, 20];
    const { ledger, allAsked } = watchedLedger(count);
    await using set = await startTestGateway({ budgetMicroUsd, ledger });
    set.upstream.behave(async (response, request) => {
      await allAsked;
      await burst(response, request);
    });
    await Promise.all(Array.from({ length: count }, () => set.post("/v1/messages", ask({ max_tokens }))));
    const { spentMicroUsd, reservedMicroUsd } = await set.run.balance();
    expect(reservedMicroUsd).toBe(0);
    expect(spentMicroUsd).toBeGreaterThan(budgetMicroUsd / 2);
    expect(spentMicroUsd).toBeLessThanOrEqual(budgetMicroUsd + Math.max(...set.lines.map(({ microUsd }) => microUsd)));
  },
);

test("a limit of the agent's own that ends an answer has nothing to do with the budget", async () => {
  await using set = await startTestGateway();
  set.upstream.behave(burst);
  await set.post("/v1/messages", ask());
  expect(set.upstream.seen[0]?.body["max_tokens"]).toBe(1000);
  expect(set.run.lastResponse()).toMatchObject({ end: "complete", code: undefined });
});

test.each([
  [5000, { type: "enabled", budget_tokens: expect.closeTo(5000 - 1024, -3) }],
  [1500, { type: "disabled" }],
])(
  "with money for %i tokens, a model that thinks aloud is asked for thoughts that leave room for an answer",
  async (tokens, thinking) => {
    const price = { input: 0, output: 15, cacheRead: 0, cacheWrite: 0, maxOutputTokens: 8000, hiddenThinking: "never" };
    const prices = new Map([["test/*", price as ModelPrice]]);
    await using set = await startTestGateway({ budgetMicroUsd: tokens * 15, settings: { prices } });
    await set.post("/v1/messages", ask({ max_tokens: 8000, thinking: { type: "enabled", budget_tokens: 7000 } }));
    expect(set.upstream.seen[0]?.body).toMatchObject({ max_tokens: tokens, thinking });
  },
);

test("a stream goes on while others of its run hold more than they need", async () => {
  // Two of 8,000 tokens hold what the first one has not covered.
  await using set = await startTestGateway({ budgetMicroUsd: 17_500 * 15 });
  const client = createReader();
  const arrived = Promise.withResolvers<void>();
  const others = Promise.withResolvers<void>();
  const streamed = Promise.withResolvers<void>();
  const gate = async (sent: number) => {
    arrived.resolve();
    await (sent === 0 ? others.promise : client.has(1));
  };
  set.upstream.behave(speak({ texts: [long, long], gate }), async (...asked) => {
    if (set.upstream.seen.length === 3) others.resolve();
    await streamed.promise;
    await speak()(...asked);
  });
  const first = set.post("/v1/messages", ask({ max_tokens: 8000 }), client);
  await arrived.promise;
  const rest = [1, 2].map(() => set.post("/v1/messages", ask({ max_tokens: 8000 })));
  expect(await first).toMatchObject({ status: 200, broken: false });
  streamed.resolve();
  for (const answer of await Promise.all(rest)) expect(answer).toMatchObject({ status: 200, broken: false });
});

const question = (bytes: number) =>
  ask({ max_tokens: 100, messages: [{ role: "user", content: "ж".repeat(bytes / 2) }] });

test("texts with more tokens than estimated overspend by one response at most, however many come at once", async () => {
  const [budgetMicroUsd, count] = [100_000, 60];
  const { ledger, allAsked } = watchedLedger(count);
  await using set = await startTestGateway({ budgetMicroUsd, ledger });
  // The endpoint counts each byte as a token.
  set.upstream.behave(async (response, request) => {
    await allAsked;
    const input = Buffer.byteLength(JSON.stringify(request.body));
    await speak({ usage: { input, output: 20, cacheRead: 0, cacheWrite: 0 } })(response, request);
  });
  const answers = await Promise.all(Array.from({ length: count }, () => set.post("/v1/messages", question(4000))));
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200, 402]));
  const { spentMicroUsd, reservedMicroUsd } = await set.run.balance();
  expect(reservedMicroUsd).toBe(0);
  const response = JSON.stringify(question(4000)).length * 3.75 + 100 * 15;
  expect(spentMicroUsd).toBeGreaterThan(budgetMicroUsd - response);
  expect(spentMicroUsd).toBeLessThanOrEqual(budgetMicroUsd + response);
});

/** Tells when so many requests have asked for money. */
function watchedLedger(count: number): { readonly ledger: Ledger; readonly allAsked: Promise<void> } {
  const books = createMemoryLedger();
  const asked = new Set<string>();
  const { promise, resolve } = Promise.withResolvers<void>();
  const ledger: Ledger = {
    ...books,
    reserve(entry) {
      if (asked.add(entry.request).size === count) resolve();
      return books.reserve(entry);
    },
  };
  return { ledger, allAsked: promise };
}

test("requests that the budget covers by estimate alone go one after another", async () => {
  // At its worst each takes 75,000 and more for its input, by estimate 22,000.
  await using set = await startTestGateway({ budgetMicroUsd: 80_000 });
  const reserved: number[] = [];
  set.upstream.behave(async (response, request) => {
    reserved.push((await set.run.balance()).reservedMicroUsd);
    await speak()(response, request);
  });
  const answers = await Promise.all(Array.from({ length: 3 }, () => set.post("/v1/messages", question(20_000))));
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 200]);
  expect(Math.max(...reserved)).toBeLessThan(30_000);
});

test("a request that waits for another's end and is given up costs nothing", async () => {
  await using set = await startTestGateway({ budgetMicroUsd: 80_000 });
  const first = new AbortController();
  const second = new AbortController();
  set.upstream.behave(speakThen(() => {}));
  const begun = Promise.withResolvers<void>();
  const streaming = set.post("/v1/messages", question(20_000), { signal: first.signal, onData: () => begun.resolve() });
  await begun.promise;
  const waiting = set.post("/v1/messages", question(20_000), { signal: second.signal });
  second.abort();
  await waiting.catch(() => {});
  first.abort();
  await streaming.catch(() => {});
  await set.settled();
  set.upstream.behave(speak());
  expect(await set.post("/v1/messages", question(20_000))).toMatchObject({ status: 200 });
  expect(set.upstream.seen).toHaveLength(2);
});

test("a lead and four workers are answered at once where there is money enough", async () => {
  await using set = await startTestGateway({ budgetMicroUsd: 5_000_000 });
  const allThere = Promise.withResolvers<void>();
  set.upstream.behave(async (response, request) => {
    if (set.upstream.seen.length === 5) allThere.resolve();
    await allThere.promise;
    await speak()(response, request);
  });
  const answers = await Promise.all(Array.from({ length: 5 }, () => set.post("/v1/messages", question(200_000))));
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200]);
});
