import { execFile } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { json } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterEach, describe, expect, test } from "vitest";
import type { ModelEvent } from "../dialects/conversation.ts";
import type { DialectName } from "../dialects/dialect.ts";
import { dialects } from "../dialects/index.ts";
import type { Fault, ScriptedProgram } from "./program.ts";
import { echo } from "./programs/echo.ts";
import { type ScriptedModel, startScriptedModel } from "./server.ts";
import { modelRequest, tools, user } from "./testing/conversation.ts";

const opened: ScriptedModel[] = [];

afterEach(async () => {
  for (const model of opened.splice(0)) await model.close();
});

async function serve(programs: Record<string, ScriptedProgram>): Promise<ScriptedModel> {
  const model = await startScriptedModel({ programs, listen: { host: "127.0.0.1", port: 0 } });
  opened.push(model);
  return model;
}

function post(model: ScriptedModel, dialect: DialectName, body: unknown, signal?: AbortSignal): Promise<Response> {
  return fetch(`${model.baseUrl}${dialects[dialect].path}`, {
    method: "POST",
    body: typeof body === "string" ? body : JSON.stringify(body),
    ...(signal && { signal }),
  });
}

function asks(dialect: DialectName, given: Parameters<typeof modelRequest>[0]): Record<string, unknown> {
  return dialects[dialect].writeRequest(modelRequest(given));
}

async function eventsOf(dialect: DialectName, response: Response): Promise<ModelEvent[]> {
  const reader = dialects[dialect].streamReader();
  const events: ModelEvent[] = [];
  for await (const chunk of response.body ?? []) events.push(...reader.push(chunk));
  return events;
}

function textOf(events: readonly ModelEvent[]): string {
  return events.map((event) => (event.type === "text" ? event.text : "")).join("");
}

describe.each(["anthropic", "chat", "responses"] as const)("a scripted model in the %s dialect", (dialect) => {
  const turn = {
    text: "I look around in this directory first.",
    actions: [{ run: "ls" }],
    usage: { input: 7, output: 9 },
  };
  const usage = { input: 7, output: 9, cacheRead: 0, cacheWrite: 0 };

  test("streams a turn", async () => {
    const model = await serve({ demo: () => turn });
    const response = await post(model, dialect, asks(dialect, { tools: tools("Bash") }));
    const events = await eventsOf(dialect, response);
    expect(textOf(events)).toBe(turn.text);
    expect(events.findLast(({ type }) => type === "usage")).toEqual({ type: "usage", usage });
    expect(events).toContainEqual({ type: "tool_start", id: expect.any(String), name: "Bash" });
    expect(events).toContainEqual({ type: "stop", reason: "tool_call" });
  });

  test("gives a turn in one piece", async () => {
    const model = await serve({ demo: () => turn });
    const response = await post(model, dialect, asks(dialect, { tools: tools("Bash"), stream: false }));
    const events = dialects[dialect].readResponse(await response.json());
    expect(textOf(events)).toBe(turn.text);
    expect(events).toContainEqual({ type: "stop", reason: "tool_call" });
  });

  test("does not know a program that there is not", async () => {
    const model = await serve({});
    for (const name of ["scripted/other", "toString"]) {
      const response = await post(model, dialect, asks(dialect, { model: name }));
      expect(response.status).toBe(404);
      expect(await response.json()).toMatchObject({ error: { type: "not_found_error" } });
    }
  });

  test("answers a defect of its program and an action without a tool as errors", async () => {
    const broken: ScriptedProgram = () => {
      throw new Error("a bug");
    };
    const model = await serve({ broken, demo: () => turn });
    expect((await post(model, dialect, asks(dialect, { model: "broken" }))).status).toBe(500);
    expect((await post(model, dialect, asks(dialect, { tools: tools("Read") }))).status).toBe(400);
  });

  test.each(["", "{", "[]", "null", '{"model": 3}'])("refuses the body %j", async (body) => {
    const model = await serve({ demo: () => turn });
    const response = await post(model, dialect, body);
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({ error: { message: expect.any(String) } });
  });

  test("fails with a status, and says when to come back", async () => {
    const model = await serve({ demo: () => ({ fault: { status: 429, retryAfterMs: 1500 } }) });
    const response = await post(model, dialect, asks(dialect, {}));
    expect(response.status).toBe(429);
    expect(response.headers.get("retry-after")).toBe("2");
    expect(response.headers.get("retry-after-ms")).toBe("1500");
    expect(await response.json()).toMatchObject({ error: { type: "rate_limit_error" } });
  });

  test.each([true, false])("refuses to answer as a model does (streamed: %j)", async (stream) => {
    const model = await serve({ demo: () => ({ fault: "refusal" }) });
    const response = await post(model, dialect, asks(dialect, { stream }));
    const events = stream ? await eventsOf(dialect, response) : dialects[dialect].readResponse(await response.json());
    expect(events).toContainEqual({ type: "stop", reason: "refusal" });
  });

  const failing = (fault: Fault) => serve({ demo: () => ({ text: "This is a long enough answer to be cut.", fault }) });

  test.each([true, false])("ends early without an end (streamed: %j)", async (stream) => {
    const model = await failing("endEarly");
    const response = await post(model, dialect, asks(dialect, { stream }));
    if (!stream) return expect(response.json()).rejects.toThrow(SyntaxError);
    const events = await eventsOf(dialect, response);
    expect(textOf(events)).toMatch(/^This is/);
    expect(events.some(({ type }) => type === "stop")).toBe(false);
  });

  test.each([true, false])("cuts the connection after some text (streamed: %j)", async (stream) => {
    const model = await failing("cut");
    const response = await post(model, dialect, asks(dialect, { stream }));
    expect(response.status).toBe(200);
    await expect(response.text()).rejects.toThrow("terminated");
  });

  test("resets before an answer", async () => {
    const model = await failing("reset");
    await expect(post(model, dialect, asks(dialect, {}))).rejects.toThrow("fetch failed");
  });

  test.each([true, false])("says what is no JSON (streamed: %j)", async (stream) => {
    const model = await failing("invalidJson");
    const response = await post(model, dialect, asks(dialect, { stream }));
    if (!stream) return expect(response.json()).rejects.toThrow(SyntaxError);
    await expect(eventsOf(dialect, response)).rejects.toMatchObject({ code: "invalid_answer" });
  });

  test("fails in the middle by its own account", async () => {
    const model = await failing("failure");
    const events = await eventsOf(dialect, await post(model, dialect, asks(dialect, {})));
    expect(events.at(-1)).toMatchObject({ type: "failure", status: 529 });
    expect((await post(model, dialect, asks(dialect, { stream: false }))).status).toBe(529);
  });

  test.each(["hang", "hangStream"] as const)("stays silent on %s until it is closed", async (fault) => {
    const asked = Promise.withResolvers<void>();
    const model = await serve({
      demo: () => {
        asked.resolve();
        return { text: "This is a long enough answer to be cut.", fault };
      },
    });
    const answered = post(model, dialect, asks(dialect, {})).then((response) => response.text());
    const failed = expect(answered).rejects.toThrow();
    await asked.promise;
    await model.close();
    await failed;
  });

  test("fails twice when a prompt orders it, then answers", async () => {
    const model = await serve({ echo });
    const request = asks(dialect, { model: "echo", messages: [user("hello [fault:529 x2]")], stream: false });
    const statuses: number[] = [];
    for (let tries = 0; tries < 3; tries++) statuses.push((await post(model, dialect, request)).status);
    expect(statuses).toEqual([529, 529, 200]);
  });
});

describe("a scripted model", () => {
  test("is served on a unix socket, too", async () => {
    const directory = await mkdtemp(join(tmpdir(), "scripted-"));
    const path = join(directory, "model.sock");
    await using model = await startScriptedModel({ programs: { demo: () => ({ text: "hello" }) }, listen: { path } });
    const sent = request({ socketPath: model.socketPath, path: "/v1/messages", method: "POST" });
    sent.end(JSON.stringify(asks("anthropic", { stream: false })));
    const answer = await new Promise((resolve) => sent.on("response", (response) => resolve(json(response))));
    expect(answer).toMatchObject({ content: [{ type: "text", text: "hello" }] });
    await rm(directory, { recursive: true });
  });

  test("knows no other paths", async () => {
    const model = await serve({});
    expect((await fetch(`${model.baseUrl}/v1/messages`)).status).toBe(404);
    expect((await fetch(`${model.baseUrl}/v1/other`, { method: "POST" })).status).toBe(404);
  });

  test("refuses a body that is too long, and says so", async () => {
    const model = await serve({});
    const response = await post(model, "chat", "x".repeat(64 * 1024 * 1024 + 1));
    expect(response.status).toBe(413);
    expect(await response.json()).toMatchObject({ error: { message: expect.stringContaining("at most") } });
  });

  test("a client that goes away in the middle leaves the others alone", async () => {
    const model = await serve({ demo: () => ({ text: "A slow answer, piece by piece.", paceMs: 60_000 }), echo });
    const client = new AbortController();
    const slow = await post(model, "anthropic", asks("anthropic", {}), client.signal);
    client.abort();
    await expect(slow.text()).rejects.toThrow();
    expect((await post(model, "anthropic", asks("anthropic", { model: "echo" }))).status).toBe(200);
  });

  test("shows each request and its headers before the answer", async () => {
    const seen: unknown[] = [];
    await using model = await startScriptedModel({
      programs: { echo },
      listen: { host: "127.0.0.1", port: 0 },
      onRequest: ({ prompt }, headers) => seen.push([prompt, headers["content-type"]]),
    });
    await (await post(model, "chat", asks("chat", { model: "echo" }))).text();
    expect(seen).toEqual([["Build it", "text/plain;charset=UTF-8"]]);
  });

  test("lets its process end once it is closed, whatever hangs", async () => {
    const fixture = fileURLToPath(new URL("testing/close-fixture.ts", import.meta.url));
    const { stdout } = await promisify(execFile)(process.execPath, [fixture], { timeout: 100_000 });
    expect(stdout).toBe("closed\n");
  });
});
