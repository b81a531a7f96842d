import { expect, test } from "vitest";
import type { Turn } from "./scripted/program.ts";
import { startScriptedGateway } from "./scripted/testing/scripted-gateway.ts";
import { post } from "./testing/gateway.ts";

const contents = [{ role: "user", parts: [{ text: "Say hello." }] }];
const turn: Turn = { text: "This answer is long enough to be cut.", usage: { input: 100, output: 20 }, paceMs: 1 };
/** At 1 USD and 5 USD for a million tokens. */
const costOfTurn = 100 * 1 + 20 * 5;

test.each(["anthropic", "chat", "responses"] as const)(
  "an agent that speaks google has its answer from an endpoint of %s, streamed and whole",
  async (endpoint) => {
    await using asked = await startAsked(turn, endpoint);
    const body = {
      contents,
      tools: [{ googleSearch: {} }, { functionDeclarations: [{ name: "run" }] }],
      generationConfig: { maxOutputTokens: 77, thinkingConfig: { thinkingBudget: -1 } },
    };
    const streamed = await asked.post("streamGenerateContent?alt=sse", body);
    expect(streamed).toMatchObject({ status: 200, headers: { "content-type": "text/event-stream" }, broken: false });
    expect(streamed.text).toContain('"finishReason":"STOP"');
    const whole = await asked.post("generateContent", body);
    expect(JSON.parse(whole.text)).toMatchObject({
      candidates: [{ content: { parts: [{ text: turn.text }] }, finishReason: "STOP" }],
      usageMetadata: { promptTokenCount: 100, candidatesTokenCount: 20 },
    });
    expect(asked.gateway.asked.map(({ request }) => request)).toMatchObject([
      { stream: true, maxOutputTokens: 77, tools: [{ name: "run" }] },
      { stream: false, maxOutputTokens: 77, tools: [{ name: "run" }] },
    ]);
    expect(await asked.gateway.calls.balance()).toMatchObject({ spentMicroUsd: 2 * costOfTurn, reservedMicroUsd: 0 });
    expect(asked.gateway.lines).toMatchObject([{ dialect: "google", end: "complete" }, { end: "complete" }]);
  },
);

test.each([
  ["cut", "stream_truncated"],
  ["endEarly", "stream_truncated"],
  ["failure", undefined],
  ["refusal", "answer_refused"],
] as const)("a stream after which comes %s ends in what is no event", async (fault, code) => {
  await using asked = await startAsked({ ...turn, fault });
  const { status, text } = await asked.post("streamGenerateContent?alt=sse", { contents });
  expect(status).toBe(200);
  const last = text.split("\n\n").at(-1) ?? "";
  expect(JSON.parse(last)).toMatchObject({ error: { message: expect.stringContaining(code ? `[${code}]` : "") } });
  expect(text).not.toContain("finishReason");
});

test("whether a model declined to answer is known of the last response", async () => {
  for (const [fault, refused] of [
    ["refusal", true],
    [undefined, false],
  ] as const) {
    for (const method of ["streamGenerateContent", "generateContent"]) {
      await using asked = await startAsked({ ...turn, ...(fault && { fault }) });
      await asked.post(method, { contents });
      expect(asked.gateway.calls.lastResponse()).toMatchObject({ end: "complete", refused });
    }
  }
});

test.each([
  ["an endpoint's refusal", "build", { contents }, { ...turn, fault: { status: 429, retryAfterMs: 0 } }, 429],
  ["a model that is not there", "gemini-flash", { contents }, turn, 404],
  ["a body without content", "build", {}, turn, 400],
  ["a body that is no object", "build", [], turn, 400],
  ["a file by its address", "build", { contents: [{ parts: [{ fileData: { fileUri: "https://e" } }] }] }, turn, 400],
] as const)("%s is told in Google's shape", async (_, model, body, given, status) => {
  await using asked = await startAsked(given);
  const refused = await asked.post("streamGenerateContent?alt=sse", body, model);
  expect(refused.status).toBe(status);
  expect(JSON.parse(refused.text)).toMatchObject({
    error: { code: status, status: expect.stringMatching(/^[A-Z_]+$/) },
  });
});

async function startAsked(turn: Turn, endpoint?: "anthropic" | "chat" | "responses") {
  const gateway = await startScriptedGateway({ program: () => turn, endpoint });
  const { token } = gateway.calls;
  return {
    gateway,
    post: (method: string, body: unknown, model = "build") =>
      post(`${gateway.baseUrl}/v1beta/models/${model}:${method}`, body, { headers: { "x-goog-api-key": token } }),
    [Symbol.asyncDispose]: () => gateway[Symbol.asyncDispose](),
  };
}
