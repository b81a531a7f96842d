import { once } from "node:events";
import { createServer } from "node:net";
import { expect, test, vi } from "vitest";
import { ask, startTestGateway, testKey, testSettings, testTimeouts } from "./testing/gateway.ts";
import {
  type Behaviour,
  breakConnection,
  hang,
  hangAfterHeaders,
  invalidJson,
  refuse,
  reset,
  speak,
  speakThen,
} from "./testing/upstream.ts";

const paths = ["/v1/messages", "/v1/chat/completions", "/v1/responses"] as const;
const silenceMs = 1000;

test.each([408, 409, 429, 500, 503, 529])("an endpoint that answers %i is asked again", async (status) => {
  await using set = await startTestGateway();
  set.upstream.behave(refuse(status), refuse(status), speak());
  const { status: answered } = await set.post("/v1/messages", ask());
  expect(answered).toBe(200);
  expect(set.upstream.seen).toHaveLength(3);
  expect(set.lines).toMatchObject([{ end: "complete", retries: 2, microUsd: 759 }]);
});

test.each([
  [429, 429, "model_rate_limited"],
  [500, 529, "model_overloaded"],
  [408, 529, "model_overloaded"],
  [529, 529, "model_overloaded"],
] as const)(
  "an endpoint that goes on to answer %i is given up with status %i and %s",
  async (status, answered, code) => {
    await using set = await startTestGateway();
    set.upstream.behave(refuse(status));
    const response = await set.post("/v1/messages", ask());
    expect(response.status).toBe(answered);
    expect(response.text).toContain(code);
    expect(response.headers["x-should-retry"]).toBe("false");
    expect(set.upstream.seen).toHaveLength(4);
    expect(await set.run.balance()).toMatchObject({ spentMicroUsd: 0, reservedMicroUsd: 0 });
    expect(set.run.lastResponse()).toMatchObject({ end: "failed", code });
    expect(set.gateway.health()).toMatchObject([{ requests: 1, inFlight: 0, retries: 3, lastErrorCode: code }]);
  },
);

test.each([
  [400, 400, "model_refused"],
  [401, 502, "model_key_refused"],
  [403, 502, "model_key_refused"],
  [404, 404, "unknown_model"],
  [301, 502, "model_unreachable"],
] as const)("an answer of %i is not asked for again and becomes %i", async (status, answered, code) => {
  await using set = await startTestGateway();
  set.upstream.behave(refuse(status, {}, "these are the endpoint's words"));
  const response = await set.post("/v1/messages", ask());
  expect(response.status).toBe(answered);
  expect(response.text).toContain(code);
  expect(set.upstream.seen).toHaveLength(1);
  expect(response.text.includes("the endpoint's words")).toBe(code !== "model_key_refused");
});

test.each([401, 403])(
  "an endpoint that answers %i and has got no key says which variable is to be set",
  async (status) => {
    await using set = await startTestGateway({ dialects: ["chat"], endpoint: { key: undefined, keyOptional: true } });
    set.upstream.behave(refuse(status, {}, "Incorrect API key provided"));
    const response = await set.post("/v1/chat/completions", ask());
    expect(response.status).toBe(401);
    expect(response.text).toContain("missing_key");
    expect(response.text).toContain(`test answered ${status}`);
    expect(response.text).toContain("TEST_API_KEY");
    expect(set.upstream.seen).toHaveLength(1);
    expect(set.upstream.seen[0]?.headers.authorization).toBeUndefined();
  },
);

test("a key that an endpoint quotes does not reach the agent", async () => {
  await using set = await startTestGateway();
  set.upstream.behave(refuse(400, {}, `what is ${testKey}?`));
  const { text } = await set.post("/v1/messages", ask());
  expect(text).toContain("what is [key]?");
  expect(text).not.toContain(testKey);
});

test.each([
  ["as it speaks", "/v1/messages"],
  ["translated", "/v1/chat/completions"],
])(
  "a key that an endpoint quotes in the middle of an answer, %s, reaches neither the agent nor a log",
  async (_, path) => {
    await using set = await startTestGateway();
    const quoted = JSON.stringify({ type: "error", error: { type: "api_error", message: `what is ${testKey}?` } });
    set.upstream.behave(speakThen((response) => response.end(`event: error\ndata: ${quoted}\n\n`)));
    const { text } = await set.post(path, ask());
    expect(text).toContain("what is [key]?");
    expect(text).not.toContain(testKey);
    expect(JSON.stringify(set.lines)).not.toContain(testKey);
  },
);

test.each([true, false])(
  "a key that an endpoint quotes as if it were an answer does not reach the agent (streamed: %s)",
  async (stream) => {
    await using set = await startTestGateway();
    set.upstream.behave(speak({ texts: [`it is ${testKey}`] }));
    const { text } = await set.post("/v1/messages", ask({ stream }));
    expect(text).toContain("it is [key]");
    expect(text).not.toContain(testKey);
  },
);

test("a key that an endpoint sends in pieces does not reach the agent", async () => {
  await using set = await startTestGateway();
  const quoted = JSON.stringify({ type: "error", error: { type: "api_error", message: `what is ${testKey}?` } });
  const middle = quoted.indexOf(testKey) + 7;
  const begun = Promise.withResolvers<void>();
  set.upstream.behave(
    speakThen(async (response) => {
      response.write(`event: error\ndata: ${quoted.slice(0, middle)}`);
      await begun.promise;
      response.end(`${quoted.slice(middle)}\n\n`);
    }),
  );
  const onData = (said: string) => said.includes("what is") && begun.resolve();
  const { text } = await set.post("/v1/messages", ask(), { onData });
  expect(text).toContain("what is [key]?");
  expect(text).not.toContain(testKey);
});

test("an answer that has the words of a placeholder for a key is left as it is", async () => {
  await using set = await startTestGateway({ endpoint: { key: "none" } });
  set.upstream.behave(speak({ texts: ["none of it"] }));
  expect((await set.post("/v1/messages", ask())).text).toContain("none of it");
});

test("a connection that breaks before an answer is tried again", async () => {
  await using set = await startTestGateway();
  set.upstream.behave(reset, reset, speak());
  expect(await set.post("/v1/messages", ask())).toMatchObject({ status: 200, broken: false });
  expect(set.lines).toMatchObject([{ end: "complete", retries: 2, estimated: false, microUsd: 759 }]);
});

test("an endpoint that always breaks the connection is unreachable, and costs nothing", async () => {
  await using set = await startTestGateway();
  set.upstream.behave(reset);
  const { status, text } = await set.post("/v1/messages", ask());
  expect(status).toBe(502);
  expect(text).toContain("model_unreachable");
  expect(set.upstream.seen).toHaveLength(4);
  expect(await set.run.balance()).toMatchObject({ spentMicroUsd: 0, reservedMicroUsd: 0 });
});

test("an endpoint that nobody listens at is unreachable", async () => {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as { port: number };
  server.close();
  await once(server, "close");
  await using set = await startTestGateway({ settings: testSettings(`http://127.0.0.1:${port}/v1`) });
  const { status, text } = await set.post("/v1/messages", ask());
  expect(status).toBe(502);
  expect(text).toContain("ECONNREFUSED");
});

test("an endpoint at which no connection comes about is unreachable, and costs nothing", async () => {
  // It takes what is said, and never answers the beginning of TLS.
  await using silent = createServer((socket) => socket.on("error", () => {}).resume()).listen(0, "127.0.0.1");
  await once(silent, "listening");
  const { port } = silent.address() as { port: number };
  await using set = await startTestGateway({
    endpoint: { baseUrl: `https://127.0.0.1:${port}/v1` },
    settings: { timeouts: { ...testTimeouts, connectMs: silenceMs } },
  });
  const { status, text } = await set.post("/v1/messages", ask());
  expect({ status, text }).toEqual({ status: 502, text: expect.stringContaining("UND_ERR_CONNECT_TIMEOUT") });
  expect(text).toContain("model_unreachable");
  expect(await set.run.balance()).toMatchObject({ spentMicroUsd: 0, reservedMicroUsd: 0 });
});

test.each([
  ["before its headers", hang],
  ["after its headers", hangAfterHeaders],
])("an endpoint that hangs %s is given up in time, and its input is counted", async (_, behaviour) => {
  await using set = await startTestGateway({
    settings: { timeouts: { ...testTimeouts, firstByteMs: silenceMs, idleMs: silenceMs } },
  });
  set.upstream.behave(behaviour);
  const abandoned = set.upstream.nextAbandoned();
  const { status, text } = await set.post("/v1/messages", ask());
  expect(status).toBe(504);
  expect(text).toContain("model_timeout");
  await abandoned;
  expect(set.upstream.seen).toHaveLength(1);
  expect(set.lines).toMatchObject([{ end: "failed", estimated: true, usage: { output: 0 } }]);
  expect(set.lines[0]?.microUsd).toBeGreaterThan(0);
});

test.each(paths)("a stream of %s that hangs is broken off as timed out", async (path) => {
  await using set = await startTestGateway({
    dialects: ["anthropic", "chat", "responses"],
    settings: { timeouts: { ...testTimeouts, idleMs: silenceMs } },
  });
  set.upstream.behave(speakThen(() => {}));
  const { status, text, broken } = await set.post(path, ask(bodies[path]));
  expect({ status, broken }).toEqual({ status: 200, broken: true });
  expect(text).toContain("Hello");
  expect(text).toContain("model_timeout");
  expect(set.run.lastResponse()).toMatchObject({ end: "truncated", code: "model_timeout" });
});

test.each(paths)("a stream of %s that is cut is never a success", async (path) => {
  await using set = await startTestGateway({ dialects: ["anthropic", "chat", "responses"] });
  for (const cut of [breakConnection, (response: import("node:http").ServerResponse) => response.end()]) {
    set.upstream.behave(speakThen(cut));
    const { status, text, broken } = await set.post(path, ask(bodies[path]));
    expect({ status, broken }).toEqual({ status: 200, broken: true });
    expect(text).toContain("stream_truncated");
    expect(set.run.lastResponse()).toMatchObject({ end: "truncated", code: "stream_truncated" });
    expect(set.lines.at(-1)).toMatchObject({ end: "truncated", estimated: true });
    expect(set.lines.at(-1)?.microUsd).toBeGreaterThan(0);
  }
  expect(set.upstream.seen).toHaveLength(2);
});

test.each(paths)("an answer of %s that is no JSON is no answer", async (path) => {
  await using set = await startTestGateway({ dialects: ["anthropic", "chat", "responses"] });
  set.upstream.behave(invalidJson);
  const whole = await set.post(path, ask({ ...bodies[path], stream: false }));
  expect(whole.status).toBe(502);
  expect(whole.text).toContain("invalid_answer");
  const streamed = await set.post(path, ask(bodies[path]));
  expect(streamed.broken).toBe(true);
  expect(set.run.lastResponse()).toMatchObject({ end: "truncated" });
});

test("a whole answer to a streamed request is no answer", async () => {
  await using set = await startTestGateway();
  set.upstream.behave((response) => {
    response.writeHead(200, { "content-type": "text/html" }).end("<p>Sign in</p>");
  });
  const { status, text } = await set.post("/v1/messages", ask());
  expect(status).toBe(502);
  expect(text).toContain("invalid_answer");
});

test("an endpoint's failure inside a stream is the agent's to see and counts as failed", async () => {
  await using set = await startTestGateway();
  const overloaded = '{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}';
  set.upstream.behave(speakThen((response) => response.end(`event: error\ndata: ${overloaded}\n\n`)));
  const { text } = await set.post("/v1/messages", ask());
  expect(text).toContain("overloaded_error");
  expect(set.run.lastResponse()).toMatchObject({ end: "failed", code: "model_overloaded" });
});

test("Retry-After is heeded as seconds and as a date, up to a limit", async () => {
  await using set = await startTestGateway();
  const later = new Date(Date.now() + 3_600_000).toUTCString();
  set.upstream.behave(refuse(429, { "retry-after": "3600" }), refuse(429, { "retry-after": later }), speak());
  expect(await set.post("/v1/messages", ask())).toMatchObject({ status: 200 });
});

test("a request that takes too long in all is given up", async () => {
  await using set = await startTestGateway({
    settings: {
      // Long enough for a busy machine to get its refusal: what is cut before that is paid for.
      timeouts: { ...testTimeouts, totalMs: 5000 },
      retries: { tries: 100, baseMs: 60_000, maxMs: 60_000, maxRetryAfterMs: 60_000 },
    },
  });
  set.upstream.behave(refuse(500));
  const { status, text } = await set.post("/v1/messages", ask());
  expect(status).toBe(504);
  expect(text).toContain("model_timeout");
  expect(await set.run.balance()).toMatchObject({ spentMicroUsd: 0, reservedMicroUsd: 0 });
});

test("a client that goes away while a refused request waits for its next try pays nothing", async () => {
  const slowly = { tries: 100, baseMs: 60_000, maxMs: 60_000, maxRetryAfterMs: 60_000 };
  await using set = await startTestGateway({ settings: { retries: slowly } });
  const client = new AbortController();
  set.upstream.behave(refuse(500));
  const gone = set.post("/v1/messages", ask({ stream: false }), { signal: client.signal }).catch(() => {});
  await vi.waitFor(() => expect(set.gateway.health()).toMatchObject([{ retries: 1 }]));
  client.abort();
  await gone;
  await set.settled();
  expect(set.lines).toMatchObject([{ end: "cut", code: "aborted", estimated: false, microUsd: 0 }]);
});

test("what a model may have written unseen is counted from when it got the request", async () => {
  let now = 0;
  await using set = await startTestGateway({ clock: { now: () => now } });
  const client = new AbortController();
  const refuseLate: Behaviour = (response, request) => {
    now += 3_600_000;
    return refuse(500)(response, request);
  };
  set.upstream.behave(refuseLate, () => {
    now += 100;
    client.abort();
  });
  await set.post("/v1/messages", ask({ stream: false }), { signal: client.signal }).catch(() => {});
  await set.settled();
  expect(set.lines).toMatchObject([{ end: "cut", estimated: true, usage: { output: 25 } }]);
});

test("a client that goes away in mid-stream stops the endpoint, and what came is counted", async () => {
  await using set = await startTestGateway();
  set.upstream.behave(speakThen(() => {}));
  const abandoned = set.upstream.nextAbandoned();
  const client = new AbortController();
  const gone = set.post("/v1/messages", ask(), { signal: client.signal, onData: () => client.abort() });
  await gone.catch(() => {});
  await abandoned;
  await set.settled();
  expect(set.lines).toMatchObject([{ end: "cut", code: "aborted", estimated: true }]);
  expect(set.lines[0]?.microUsd).toBeGreaterThan(0);
  expect(await set.run.balance()).toMatchObject({ reservedMicroUsd: 0 });
});

test("a client that goes away before an answer stops the endpoint, and the input is counted", async () => {
  await using set = await startTestGateway();
  const client = new AbortController();
  set.upstream.behave(() => client.abort());
  const abandoned = set.upstream.nextAbandoned();
  await set.post("/v1/messages", ask(), { signal: client.signal }).catch(() => {});
  await abandoned;
  await set.settled();
  expect(set.lines).toMatchObject([{ end: "cut", code: "aborted", estimated: true }]);
});

test("a run that is ended takes its streams with it", async () => {
  await using set = await startTestGateway();
  set.upstream.behave(speakThen(() => void set.run.fail("cancelled", "enough")));
  const { text, broken } = await set.post("/v1/messages", ask());
  expect(broken).toBe(true);
  expect(text).toContain("run_ended");
  const later = await set.post("/v1/messages", ask());
  expect(later.status).toBe(410);
  expect(later.text).toContain("run_ended");
});

const bodies: Record<(typeof paths)[number], Record<string, unknown>> = {
  "/v1/messages": {},
  "/v1/chat/completions": {},
  "/v1/responses": { messages: undefined, max_tokens: undefined, input: "Say hello." },
};
