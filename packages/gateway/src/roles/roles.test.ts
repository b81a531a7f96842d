import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { inspect } from "node:util";
import { afterEach, describe, expect, test } from "vitest";
import { z } from "zod";
import {
  type Fault,
  type ScriptedProgram,
  type ScriptedRequest,
  startScriptedModel,
  type Turn,
} from "../scripted/index.ts";
import { AnswerError, InvalidAnswerError } from "./errors.ts";
import { createRoles, type Roles } from "./roles.ts";

const schema = z.object({ title: z.string(), steps: z.array(z.string()).min(1) });
const plan = { title: "A shop", steps: ["Build it"] };
const question = { role: "plan", instructions: "You plan.", prompt: "A shop for boats", schema } as const;

const cleanups: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

interface Asked {
  readonly roles: Roles;
  readonly requests: ScriptedRequest[];
  readonly authorizations: (string | undefined)[];
}

/** Roles whose model is the program, asked directly: it speaks as the gateway does. */
async function askProgram(program: ScriptedProgram): Promise<Asked> {
  const requests: ScriptedRequest[] = [];
  const authorizations: (string | undefined)[] = [];
  const model = await startScriptedModel({
    programs: { plan: program, vision: program },
    listen: { host: "127.0.0.1", port: 0 },
    onRequest(request, headers) {
      requests.push(request);
      authorizations.push(headers.authorization);
    },
  });
  cleanups.push(() => model.close());
  return { roles: rolesAt(model.baseUrl), requests, authorizations };
}

function rolesAt(baseUrl: string): Roles {
  const roles = createRoles({ gateway: { baseUrl, token: "run-token" } });
  cleanups.push(async () => roles[Symbol.asyncDispose]());
  return roles;
}

/** Gives one turn after the other, by how often it was asked to answer again. */
function answers(...turns: Turn[]): ScriptedProgram {
  return ({ request }) => turns[request.messages.filter(({ role }) => role === "assistant").length] ?? { text: "" };
}

describe("a structured answer", () => {
  test("fits its schema, and its tokens are counted", async () => {
    const usage = { input: 100, output: 20, cacheRead: 30, cacheWrite: 4 };
    const { roles, requests, authorizations } = await askProgram(answers({ object: plan, usage }));
    expect(await roles.ask(question)).toEqual({ value: plan, usage, tries: 1 });
    expect(requests).toMatchObject([{ system: "You plan.", prompt: "A shop for boats", model: "plan", tools: [] }]);
    expect(requests[0]?.answerSchema?.schema).toMatchObject({ required: ["title", "steps"] });
    expect(authorizations).toEqual(["Bearer run-token"]);
  });

  test.each([
    ["no JSON", "Sure! Here is your plan", /not JSON/],
    ["the wrong shape", '{"title": 3}', /expected string/],
    ["empty", "", /not JSON/],
  ])("that is %s is asked for again with what is wrong", async (_, text, problem) => {
    const usage = { input: 10, output: 1 };
    const { roles, requests } = await askProgram(answers({ text, usage }, { object: plan, usage }));
    const answer = await roles.ask(question);
    expect(answer).toEqual({ value: plan, usage: { input: 20, output: 2, cacheRead: 0, cacheWrite: 0 }, tries: 2 });
    expect(requests[1]?.prompt).toBe("A shop for boats");
    expect(requests[1]?.lastPrompt).toMatch(problem);
    const [, wrong] = requests[1]?.request.messages ?? [];
    expect(wrong).toEqual({ role: "assistant", parts: [{ type: "text", text: text || "(nothing)" }] });
  });

  test("that never fits fails with its whole text, after the given number of tries", async () => {
    const text = `not a plan ${"x".repeat(20_000)}`;
    const { roles, requests } = await askProgram(() => ({ text }));
    const error = await roles.ask({ ...question, maxRepairs: 1 }).catch((error: unknown) => error);
    expect(error).toBeInstanceOf(InvalidAnswerError);
    expect(error).toMatchObject({ code: "invalid_answer", text, message: expect.stringContaining("after 2 tries") });
    expect((error as Error).message.length).toBeLessThan(1000);
    expect(requests).toHaveLength(2);
  });

  test("takes images along", async () => {
    const { roles, requests } = await askProgram(answers({ object: plan }));
    const image = { mediaType: "image/png", data: Buffer.from("an image") };
    await roles.ask({ ...question, role: "vision", images: [image] });
    expect(requests[0]?.request.messages[0]?.parts).toEqual([
      { type: "image", mediaType: "image/png", base64: image.data.toString("base64") },
      { type: "text", text: "A shop for boats" },
    ]);
  });

  test("says how long it may be", async () => {
    const { roles, requests } = await askProgram(answers({ object: plan }));
    await roles.ask(question);
    await roles.ask({ ...question, maxOutputTokens: 77 });
    expect(requests.map(({ request }) => request.maxOutputTokens)).toEqual([16_384, 77]);
  });
});

describe("what is no answer is not asked for again", () => {
  test.each<[string, Turn, string]>([
    ["a refusal", { fault: "refusal" }, "answer_refused"],
    ["an answer cut at its longest", { text: '{"title":', stop: "max_tokens" }, "stream_truncated"],
    ["a whole answer cut at its longest", { object: plan, stop: "max_tokens" }, "stream_truncated"],
    ["an empty answer cut at its longest", { text: "", stop: "max_tokens" }, "stream_truncated"],
    ["a cut connection", { object: plan, fault: "cut" }, "stream_truncated"],
    ["a clean end in the middle", { object: plan, fault: "endEarly" }, "stream_truncated"],
    ["an error in the middle", { object: plan, fault: "failure" }, "model_overloaded"],
    ["a reset", { fault: "reset" }, "model_unreachable"],
    ["429", { fault: { status: 429 } }, "model_rate_limited"],
    ["529", { fault: { status: 529 } }, "model_overloaded"],
    ["401", { fault: { status: 401 } }, "model_key_refused"],
    ["400", { fault: { status: 400 } }, "model_refused"],
  ])("%s", async (_, turn, code) => {
    const { roles, requests } = await askProgram(() => turn);
    const error = await roles.ask(question).catch((error: unknown) => error);
    expect(error).toMatchObject({ name: "SlipwayError", code });
    expect(requests).toHaveLength(1);
    expect(inspect(error, { depth: Number.POSITIVE_INFINITY })).not.toMatch(/A shop for boats|run-token/);
  });

  test.each<[string, Turn, string]>([
    ["cut at its longest", { text: '{"title":', stop: "max_tokens" }, "stream_truncated"],
    ["ended in the middle", { text: "A shop has", fault: "endEarly" }, "stream_truncated"],
    ["declined in the middle", { text: "I can not", stop: "refusal" }, "answer_refused"],
  ])("an answer that was %s is kept as far as it came", async (_, turn, code) => {
    const { roles } = await askProgram(() => turn);
    for (const ask of [() => roles.ask(question), () => roles.text(question)]) {
      const error = await ask().catch((error: unknown) => error);
      expect(error).toBeInstanceOf(AnswerError);
      expect(error).toMatchObject({ code, text: expect.stringMatching(/./) });
      expect(turn.text?.startsWith((error as AnswerError).text)).toBe(true);
    }
  });

  test("an unknown model", async () => {
    const { roles } = await askProgram(() => ({}));
    await expect(roles.ask({ ...question, role: "judge" })).rejects.toMatchObject({ code: "unknown_model" });
  });

  test("a stream that is no JSON keeps what it said", async () => {
    const { roles } = await askProgram(() => ({ object: plan, fault: "invalidJson" satisfies Fault }));
    const error = await roles.ask(question).catch((error: unknown) => error);
    expect(error).toBeInstanceOf(InvalidAnswerError);
    expect((error as InvalidAnswerError).text).toBe('{"type": "cont');
  });

  test.each(["before an answer", "in the middle of one"])("a caller that gives up %s", async (when) => {
    const asked = Promise.withResolvers<void>();
    const baseUrl = await serve((_request, response) => {
      if (when === "before an answer") return asked.resolve();
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.write('data: {"type":"ping"}\n\n', () => asked.resolve());
    });
    const roles = rolesAt(baseUrl);
    const caller = new AbortController();
    const answer = roles.ask({ ...question, signal: caller.signal });
    const failed = expect(answer).rejects.toMatchObject({ code: "aborted" });
    await asked.promise;
    caller.abort();
    await failed;
    await expect(roles.ask({ ...question, signal: caller.signal })).rejects.toMatchObject({ code: "aborted" });
  });

  test.each<[string, number, string, string]>([
    [
      "the gateway's own code",
      402,
      '{"type":"error","error":{"type":"billing_error","message":"none left [budget_exhausted]"}}',
      "budget_exhausted",
    ],
    [
      "a code that is not ours",
      500,
      '{"type":"error","error":{"type":"api_error","message":"what [is_this]"}}',
      "model_overloaded",
    ],
    ["an error that is no JSON", 503, "<html>", "model_overloaded"],
  ])("%s decides", async (_, status, body, code) => {
    const baseUrl = await serve((_request, response) => response.writeHead(status).end(body));
    await expect(rolesAt(baseUrl).ask(question)).rejects.toMatchObject({ code });
  });
});

describe("what is no stream of a model", () => {
  test.each<[string, string, string]>([
    ["nothing", "", "stream_truncated"],
    ["an event that there is not", 'data: {"type":"surprise"}\n\n', "invalid_answer"],
    ["an event of the wrong shape", 'data: {"type":"message_start","message":3}\n\n', "invalid_answer"],
    ["text", "hello", "stream_truncated"],
  ])("%s", async (_, body, code) => {
    const baseUrl = await serve((_request, response) => {
      response.writeHead(200, { "content-type": "text/event-stream" }).end(body);
    });
    await expect(rolesAt(baseUrl).ask(question)).rejects.toMatchObject({ name: "SlipwayError", code });
  });
});

describe("a plain answer", () => {
  test("is the model's text", async () => {
    const { roles } = await askProgram(() => ({ text: "hello", usage: { input: 5, output: 1 } }));
    const usage = { input: 5, output: 1, cacheRead: 0, cacheWrite: 0 };
    expect(await roles.text(question)).toEqual({ text: "hello", usage });
  });

  test("that is empty or cut is none", async () => {
    const { roles } = await askProgram(({ prompt }) => ({ text: " ", stop: prompt === "cut" ? "max_tokens" : "end" }));
    await expect(roles.text(question)).rejects.toMatchObject({ code: "invalid_answer", text: " " });
    await expect(roles.text({ ...question, prompt: "cut" })).rejects.toMatchObject({ code: "stream_truncated" });
  });
});

async function serve(listener: RequestListener): Promise<string> {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  cleanups.push(async () => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}
