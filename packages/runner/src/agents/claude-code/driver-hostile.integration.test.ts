import { chmod, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { endOf } from "../../testing/end.ts";
import { play, startPlace, unending } from "../program/testing.ts";
import { createClaudeCodeDriver } from "./driver.ts";

/** Programs that speak the stream as the real one does, and then do what it has no reason to. */
let tools: string;
beforeAll(async () => {
  tools = await mkdtemp(join(tmpdir(), "tools-"));
  await mkdir(join(tools, "claude-code"));
});
afterAll(() => rm(tools, { recursive: true, force: true }));

async function turnOf(script: string) {
  const program = join(tools, "claude-code/claude");
  await writeFile(program, `#!/bin/sh\n${script}\n`);
  await chmod(program, 0o755);
  await using place = await startPlace(undefined, tools);
  await using agent = await place.open(createClaudeCodeDriver(place.surroundings));
  const events = await play(agent.turn("Begin", unending));
  expect(await place.processes()).toEqual([]);
  return { events, end: endOf(events) };
}

const say = (message: object) => `echo '${JSON.stringify(message)}'`;
const stream = (event: object, parent: string | null = null) =>
  say({ type: "stream_event", event, parent_tool_use_id: parent });
const result = (fields: object = {}) =>
  say({ type: "result", subtype: "success", is_error: false, result: "Done.", ...fields });
const complete = [
  stream({ type: "message_start" }),
  stream({ type: "message_delta", delta: { stop_reason: "end_turn" } }),
].join("\n");

it("the error about a missing program says what to install", async () => {
  await using place = await startPlace(undefined, "/nonexistent");
  await expect(place.open(createClaudeCodeDriver(place.surroundings))).rejects.toMatchObject({
    code: "component_missing",
    message: expect.stringContaining("@anthropic-ai/claude-code"),
  });
});

it("an exit without a result is a crash, whatever its code", async () => {
  expect((await turnOf("exit 0")).end).toMatchObject({
    reason: "crashed",
    message: expect.stringContaining("exit code 0"),
  });
});

it("a result with an error is a failure, whatever its subtype", async () => {
  const failed = result({ is_error: true, result: "API Error: 529", api_error_status: 529 });
  expect((await turnOf(`${complete}\n${failed}`)).end).toMatchObject({ reason: "overloaded" });
});

it("a success whose last response is incomplete is truncated", async () => {
  const cut = [stream({ type: "message_start" }), stream({ type: "message_stop" })].join("\n");
  expect((await turnOf(`${complete}\n${cut}\n${result()}`)).end).toMatchObject({ reason: "truncated" });
});

it("a cut response of a sub-agent is not the agent's", async () => {
  expect((await turnOf(`${complete}\n${stream({ type: "message_start" }, "call-1")}\n${result()}`)).end).toMatchObject({
    reason: "completed",
  });
});

it("what follows a result replaces it", async () => {
  const { end } = await turnOf(`${complete}\n${result()}\n${complete}\n${result({ result: "More." })}`);
  expect(end).toMatchObject({ reason: "completed", message: "More." });
  expect((await turnOf(`${complete}\n${result()}\n${stream({ type: "message_start" })}`)).end).toMatchObject({
    reason: "crashed",
  });
});

it("lines that are not the protocol end the turn", async () => {
  expect((await turnOf("echo oops; cat")).end).toMatchObject({ reason: "protocol" });
  expect((await turnOf(`${say({ type: "result", subtype: 7 })}; cat`)).end).toMatchObject({ reason: "protocol" });
});

it("unknown messages are ignored, and unknown tools are shown", async () => {
  const tool = say({
    type: "assistant",
    message: { content: [{ type: "tool_use", id: "1", name: "Teleport", input: {} }] },
  });
  const { events, end } = await turnOf(`${say({ type: "weather" })}\n${tool}\n${complete}\n${result()}`);
  expect(events).toContainEqual(expect.objectContaining({ name: "Teleport", kind: "other" }));
  expect(end).toMatchObject({ reason: "completed" });
});

it("a todo list is a plan, and an invalid one is not", async () => {
  const call = (input: object) =>
    say({ type: "assistant", message: { content: [{ type: "tool_use", id: "1", name: "TodoWrite", input }] } });
  const { events } = await turnOf(
    `${call({ todos: [{ content: "First", status: "pending" }] })}\n${call({ todos: 7 })}`,
  );
  expect(events.filter((event) => event.type === "plan")).toEqual([
    { type: "plan", entries: [{ text: "First", status: "pending" }] },
  ]);
});

it("a compaction and a retry are reported", async () => {
  const status = [
    say({ type: "system", subtype: "status", status: "compacting" }),
    say({ type: "system", subtype: "api_retry", error: "overloaded", error_status: 529 }),
  ];
  const { events } = await turnOf(status.join("\n"));
  expect(events).toContainEqual({ type: "status", status: "compacting" });
  expect(events).toContainEqual({ type: "status", status: "retrying", detail: "overloaded 529" });
});

it("the earlier cost of a conversation is not counted again", async () => {
  const usage = {
    inputTokens: 5,
    outputTokens: 7,
    cacheReadInputTokens: 0,
    cacheCreationInputTokens: 2,
    costUSD: 0.25,
    costBasis: "list",
  };
  const { events } = await turnOf(
    `${complete}\n${result({ total_cost_usd: 9, model_usage_since_last_result: { a: usage, b: usage } })}`,
  );
  expect(events).toContainEqual({
    type: "usage",
    usage: { input: 10, output: 14, cacheRead: 0, cacheWrite: 4 },
    costUsd: 0.5,
  });
});

it("a program that keeps running after its result is ended", { timeout: 300_000 }, async () => {
  expect((await turnOf(`${complete}\n${result()}\nexec sleep 600`)).end).toMatchObject({ reason: "completed" });
});
