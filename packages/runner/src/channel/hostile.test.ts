import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { endAs, type NumberedEvent, newId, type RunnerEvent } from "@slipway/contract";
import { afterEach, beforeEach, expect, test } from "vitest";
import { type Channel, openChannel } from "./channel.ts";
import { type Relay, startRelay } from "./relay.ts";
import { ended, note } from "./testing/events.ts";
import { startTestHost, type TestHost } from "./testing/host.ts";
import { createTestPlace, type TestPlace } from "./testing/place.ts";
import { createTransport } from "./transport.ts";

/** A program beside the runner: it has the run's token, reads the runner's files and reaches the host as agents do. */
let place: TestPlace;
let host: TestHost;
let relay: Relay;
let runner: Channel;
let neighbour: Channel;
let neighbourRun: Awaited<ReturnType<TestHost["openRun"]>>;

const open = (token: string, directory: string) =>
  openChannel({
    transport: createTransport({ socketPath: place.socketPath, token }),
    directory,
    instance: crypto.randomUUID(),
  });

beforeEach(async () => {
  place = createTestPlace();
  host = await startTestHost(place.directory, place.run);
  relay = await startRelay(place.socketPath);
  runner = await open(host.run.token, place.spool);
  await runner.hello();
  for (const each of ["a", "b", "c"]) await runner.emit(note(each));
  await runner.flush();
  neighbourRun = await host.openRun(newId("run"));
  neighbour = await open(neighbourRun.token, join(place.directory, "neighbour"));
  await neighbour.hello();
});

afterEach(async () => {
  await neighbour.emit(note("untouched"));
  await neighbour.emit(ended);
  await neighbour.flush();
  expect(await neighbourRun.ended).toEqual(endAs("completed", "done"));
  expect(await Array.fromAsync(neighbourRun.events())).toMatchObject([{ event: note("untouched") }, { event: ended }]);
  for (const channel of [runner, neighbour]) await channel[Symbol.asyncDispose]();
  await relay.close();
  await host[Symbol.asyncDispose]();
  place[Symbol.dispose]();
});

const numbered = (sequence: number, event: RunnerEvent): NumberedEvent => ({ sequence, at: 0, event });
const spooled = () =>
  readFileSync(join(place.spool, "events.jsonl"), "utf8")
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));
const post = (body: string, token = host.run.token) =>
  fetch(`http://127.0.0.1:${relay.port}/run/events`, {
    method: "POST",
    headers: { authorization: `Bearer ${token}` },
    body,
  });
const postEvents = (events: readonly unknown[]) => post(JSON.stringify({ events }));

test("that posts success ends its own run, and the runner learns of it", async () => {
  expect((await postEvents([numbered(4, ended)])).status).toBe(200);
  expect(await host.run.ended).toEqual(endAs("completed", "done"));
  await runner.emit(note("d"));
  await expect(runner.flush()).rejects.toMatchObject({ code: "run_ended" });
  expect(await host.stored()).toHaveLength(4);
});

test("that repeats and reorders events changes nothing", async () => {
  const events = spooled();
  expect((await postEvents(events)).status).toBe(200);
  expect((await postEvents(events.slice(1))).status).toBe(200);
  expect((await postEvents(events.toReversed())).status).toBe(400);
  expect((await postEvents([numbered(9, ended)])).status).toBe(400);
  await runner.emit(note("d"));
  await runner.emit(ended);
  await runner.flush();
  expect((await host.stored()).map(({ event }) => event)).toEqual([...["a", "b", "c", "d"].map(note), ended]);
  expect(await host.run.ended).toEqual(endAs("completed", "done"));
});

test("that forges a used number ends its run as tampered", async () => {
  expect((await postEvents([numbered(2, note("forged"))])).status).toBe(410);
  expect(await host.run.ended).toMatchObject({ reason: "tampered" });
  await runner.emit(note("d"));
  await expect(runner.flush()).rejects.toMatchObject({ code: "run_ended" });
  expect((await host.stored()).map(({ event }) => event)).toEqual(["a", "b", "c"].map(note));
});

test("that uses a number first is detected when the runner uses it", async () => {
  expect((await postEvents([numbered(4, note("forged"))])).status).toBe(200);
  await runner.emit(note("d"));
  await expect(runner.flush()).rejects.toMatchObject({ code: "run_ended" });
  expect(await host.run.ended).toMatchObject({ reason: "tampered" });
});

test("that sends garbage only delays the runner", async () => {
  for (const body of ["", "{", "\0\0\0", '{"events":[{}]}', "x".repeat(2 * 1024 * 1024)]) {
    const status = await post(body).then(
      (response) => response.status,
      () => "cut",
    );
    expect([400, 413, "cut"]).toContain(status);
  }
  await runner.emit(ended);
  await runner.flush();
  expect(await host.run.ended).toEqual(endAs("completed", "done"));
});

test("that names another run by a made-up token is refused", async () => {
  const forged = host.run.token.replace(place.run, neighbourRun.id);
  expect((await post(JSON.stringify({ events: [numbered(1, ended)] }), forged)).status).toBe(401);
});

test("that writes into the runner's files harms only its own run", async () => {
  await runner[Symbol.asyncDispose]();
  const events = spooled();
  events[1].event.text = "forged";
  writeFileSync(join(place.spool, "events.jsonl"), events.map((each) => `${JSON.stringify(each)}\n`).join(""));
  runner = await open(host.run.token, place.spool);
  expect(await runner.hello()).toMatchObject({ next: 4 });
  await runner.emit(ended);
  await runner.flush();
  expect((await host.stored()).map(({ event }) => event)).toEqual([...["a", "b", "c"].map(note), ended]);
});
