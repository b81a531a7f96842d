import { connect, type Socket } from "node:net";
import { endAs, type RunId, runChannel } from "@slipway/contract";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { end, exchange, note, notes, startTestHost, type TestHost } from "./testing.ts";

let host: TestHost;
let run: RunId;
let other: RunId;
beforeEach(async () => {
  host = await startTestHost();
  run = await host.openRun();
  other = await host.openRun();
  await host.sendEvents(other, notes(1, 2));
});
afterEach(async () => {
  expect(await host.stored(other)).toEqual(notes(1, 2));
  expect(await host.sendEvents(other, [note(3)])).toMatchObject({ status: 200, body: { next: 4 } });
  expect(host.failures).toEqual([]);
  await host[Symbol.asyncDispose]();
});

const raw = (body: string, path = "/run/events") => exchange(host.socketPath, run, "POST", path, body);

test.each([
  ["nothing", ""],
  ["no JSON", "{"],
  ["no object", "null"],
  ["no list", '{"events":1}'],
  ["an empty list", '{"events":[]}'],
  ["a number that is none", '{"events":[{"sequence":0,"at":1,"event":{"type":"resumed","step":0}}]}'],
  ["a number beyond all", '{"events":[{"sequence":200001,"at":1,"event":{"type":"resumed","step":0}}]}'],
  ["a kind that is none", '{"events":[{"sequence":1,"at":1,"event":{"type":"verdict","ok":true}}]}'],
  ["a reason that is the host's", `{"events":[${JSON.stringify(end(1)).replace("completed", "tampered")}]}`],
  ["a field too many", '{"events":[{"sequence":1,"at":1,"event":{"type":"resumed","step":0,"x":1}}]}'],
  ["a prototype", '{"events":[{"sequence":1,"at":1,"__proto__":{},"event":{"type":"resumed","step":0}}]}'],
  ["a text beyond its limit", JSON.stringify({ events: [note(1, "x".repeat(16 * 1024 + 1))] })],
  ["too many events", JSON.stringify({ events: notes(1, runChannel.maxBatchEvents + 1) })],
  ["deep nesting", `{"events":${"[".repeat(100_000)}${"]".repeat(100_000)}}`],
  ["a hundred thousand fields", `{"events":[{${Array.from({ length: 80_000 }, (_, i) => `"k${i}":1`)}}]}`],
])("%s is refused, and the run continues", async (_, body) => {
  const answer = await raw(body);
  expect(answer).toMatchObject({ status: 400, body: { code: "event_rejected", next: 1 } });
  expect(JSON.stringify(answer.body).length).toBeLessThan(2000);
  host.time.advance(10_000);
  expect(await host.sendEvents(run, [note(1)])).toMatchObject({ status: 200 });
});

test.each([
  ["another path", "POST", "/run/verdict"],
  ["another method", "DELETE", "/run/events"],
  ["a path that is none", "GET", "//"],
  ["a path upwards", "GET", "/run/../other"],
])("%s is refused", async (_, method, path) => {
  expect(await host.send(run, method, path)).toMatchObject({ status: 400, body: { code: "invalid_request" } });
});

test("a giant body is refused before it is read, and its connection is closed", async () => {
  const socket = open(`POST /run/events HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${run}\r\n`);
  socket.write("transfer-encoding: chunked\r\n\r\n");
  const answered = readAll(socket);
  socket.write(`100001\r\n${"x".repeat(1024 * 1024 + 1)}`);
  const answer = await answered;
  expect(answer).toContain("413");
  expect(answer).toContain("too_large");
});

test("a body that arrives too slowly is dropped", async () => {
  const socket = open(`POST /run/events HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${run}\r\n`);
  socket.write('content-length: 1000\r\n\r\n{"events":[');
  const answered = readAll(socket);
  await vi.waitFor(() => expect(host.time.waiting).toBe(3));
  host.time.advance(10_000);
  expect(await answered).toContain("did not come within 10 s");
});

test("an incomplete body is dropped", async () => {
  const socket = open(`POST /run/events HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${run}\r\n`);
  socket.write(`content-length: 1000\r\n\r\n${JSON.stringify({ events: [note(1)] })}`);
  await vi.waitFor(() => expect(host.time.waiting).toBe(3));
  socket.destroy();
  await vi.waitFor(() => expect(host.time.waiting).toBe(2));
  expect(await host.stored(run)).toEqual([]);
});

test("many concurrent bodies wait for each other, and only those of the same run", async () => {
  const sockets = Array.from({ length: 8 }, () => {
    const socket = open(`POST /run/events HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${run}\r\n`);
    socket.write("content-length: 1000\r\n\r\n{");
    return socket;
  });
  await vi.waitFor(() => expect(host.time.waiting).toBe(10));
  const answer = await host.sendEvents(run, [note(1)]);
  expect(answer).toMatchObject({ status: 429, body: { code: "rate_limited" } });
  expect(answer.headers["retry-after"]).toBe("1");
  for (const socket of sockets) socket.destroy();
});

test("events beyond the rate are refused for a while, and none is kept", async () => {
  let next = 1;
  let answer = await host.sendEvents(run, notes(next, next + 255));
  while (answer.status === 200) {
    next += 256;
    answer = await host.sendEvents(run, notes(next, next + 255));
  }
  expect(next).toBeGreaterThan(4000);
  expect(next).toBeLessThan(10_000);
  expect(answer).toMatchObject({ status: 429, body: { code: "rate_limited" }, headers: { "retry-after": "1" } });
  expect(await host.log.next(run)).toBe(next);
  host.time.advance(1000);
  expect(await host.sendEvents(run, notes(next, next + 255))).toMatchObject({ status: 200 });
});

test("endless garbage uses up the rate of its own run", async () => {
  const garbage = `{"events":[${"1,".repeat(200_000)}1]}`;
  const statuses = [];
  for (let i = 0; i < 10; i++) statuses.push((await raw(garbage)).status);
  expect(statuses.filter((status) => status === 429).length).toBeGreaterThan(4);
});

test("endless questions use up the rate of their own run", async () => {
  await host.channel.send(run, { type: "cancel" });
  const ask = () => host.send(run, "GET", "/run/control?after=0");
  let answers = 0;
  while ((await ask()).status === 200) answers++;
  expect(answers).toBe(200);
  expect(await host.send(run, "POST", "/run/hello", { version: 1, instance: "a" })).toMatchObject({ status: 429 });
  host.time.advance(1000);
  expect(await ask()).toMatchObject({ status: 200 });
});

test("a program that posts success ends its own run with a claim", async () => {
  await host.sendEvents(run, [note(1)]);
  await host.sendEvents(run, [
    { sequence: 2, at: 0, event: { type: "ended", end: { reason: "completed", message: "" } } },
  ]);
  expect(await host.channel.ended(run)).toEqual(endAs("completed"));
});

test("a program that forges the next number before the runner is detected by the runner's own event", async () => {
  await host.sendEvents(run, [note(1), note(2, "forged")]);
  await host.sendEvents(run, [note(2, "honest")]);
  expect(await host.channel.ended(run)).toMatchObject({ reason: "tampered" });
});

function open(head: string): Socket {
  const socket = connect(host.socketPath);
  socket.on("error", () => {});
  socket.write(head);
  return socket;
}

/** What came until the connection was closed, be it by force. */
function readAll(socket: Socket): Promise<string> {
  let text = "";
  socket.on("data", (data) => {
    text += data;
  });
  return new Promise((resolve) => socket.on("close", () => resolve(text)));
}
