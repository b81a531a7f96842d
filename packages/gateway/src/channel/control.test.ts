import { request as sendRequest } from "node:http";
import { type Control, hasCode, type RunId, runChannel } from "@slipway/contract";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { type Answer, startTestHost, type TestHost } from "./testing.ts";

let host: TestHost;
let run: RunId;
beforeEach(async () => {
  host = await startTestHost();
  run = await host.openRun();
});
afterEach(() => host[Symbol.asyncDispose]());

const poll = (after: number) => host.send(run, "GET", `/run/control?after=${after}`);
const messages = ({ body }: Answer) => (body as { messages: unknown[] }).messages;

/** A poll that the host holds: the silence watch has one timer, each poll another. */
async function waitingPoll(after: number): Promise<{ readonly answer: Promise<Answer> }> {
  const before = host.time.waiting;
  const answer = poll(after);
  await vi.waitFor(() => expect(host.time.waiting).toBe(before + 1));
  return { answer };
}

test("messages come in order from the requested number on", async () => {
  await host.channel.send(run, { type: "message", text: "one" });
  await host.channel.send(run, { type: "interrupt" });
  await host.channel.send(run, { type: "permission", id: "p", allow: false, reason: "no" });
  expect(messages(await poll(0))).toEqual([
    { sequence: 1, type: "message", text: "one" },
    { sequence: 2, type: "interrupt" },
    { sequence: 3, type: "permission", id: "p", allow: false, reason: "no" },
  ]);
  expect(messages(await poll(2))).toMatchObject([{ sequence: 3 }]);
});

test("a poll waits for a message", async () => {
  const { answer } = await waitingPoll(0);
  await host.channel.send(run, { type: "cancel" });
  expect(messages(await answer)).toEqual([{ sequence: 1, type: "cancel" }]);
});

test("a poll is answered empty after a heartbeat", async () => {
  const { answer } = await waitingPoll(0);
  host.time.advance(runChannel.heartbeatMs);
  expect(await answer).toMatchObject({ status: 200, body: { messages: [] } });
});

test("a waiting poll learns that the run ends", async () => {
  const { answer } = await waitingPoll(0);
  await host.channel.fail(run, "timeout", "too long");
  expect(await answer).toMatchObject({ status: 410, body: { code: "run_ended" } });
});

test("a new runner frees the polls of its predecessor", async () => {
  await host.send(run, "POST", "/run/hello", { version: 1, instance: "first" });
  const { answer } = await waitingPoll(0);
  await host.send(run, "POST", "/run/hello", { version: 1, instance: "second" });
  expect(messages(await answer)).toEqual([]);
});

test("a poll whose runner is gone is freed", async () => {
  const headers = { authorization: `Bearer ${run}` };
  const request = sendRequest({ socketPath: host.socketPath, path: "/run/control?after=0", headers, agent: false });
  request.on("error", () => {});
  request.end();
  await vi.waitFor(() => expect(host.time.waiting).toBe(2));
  request.destroy();
  await vi.waitFor(() => expect(host.time.waiting).toBe(1));
});

test("more polls than allowed free the oldest", async () => {
  const first = await waitingPoll(0);
  for (let i = 0; i < 7; i++) await waitingPoll(0);
  const last = poll(0);
  expect(messages(await first.answer)).toEqual([]);
  await host.channel.send(run, { type: "cancel" });
  expect(messages(await last)).toHaveLength(1);
});

test("long messages are sent a page at a time", async () => {
  const text = "x".repeat(256 * 1024);
  for (let i = 0; i < 5; i++) await host.channel.send(run, { type: "context", text });
  expect(messages(await poll(0))).toHaveLength(2);
  expect(messages(await poll(4))).toHaveLength(1);
});

test.each([
  ["without a number", ""],
  ["with a negative one", "?after=-1"],
  ["with a word", "?after=x"],
  ["with one beyond all numbers", "?after=99999999999999999999"],
])("a poll %s is refused", async (_, query) => {
  const answer = await host.send(run, "GET", `/run/control${query}`);
  expect(answer).toMatchObject({ status: 400, body: { code: "invalid_request" } });
});

test("a message that the runner could not read is refused and not stored", async () => {
  const long: Control = { type: "message", text: "x".repeat(256 * 1024 + 1) };
  await expect(host.channel.send(run, long)).rejects.toSatisfy((error) => hasCode(error, "invalid_request"));
  await host.channel.send(run, { type: "cancel" });
  expect(messages(await poll(0))).toEqual([{ sequence: 1, type: "cancel" }]);
});
