import { endAs, hasCode, newId, type RunId, runChannel } from "@slipway/contract";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createRunChannel } from "./channel.ts";
import { createFakeTime, end, note, notes, startTestHost, type TestHost, task } from "./testing.ts";

let host: TestHost;
let run: RunId;
beforeEach(async () => {
  host = await startTestHost();
  run = await host.openRun();
});
afterEach(() => host[Symbol.asyncDispose]());

const hello = (instance: string, version: number = runChannel.version) =>
  host.send(run, "POST", "/run/hello", { version, instance });

describe("a hello", () => {
  test("is answered with the run, its task and the next number", async () => {
    expect(await hello("a")).toMatchObject({ status: 200, body: { run, task, next: 1 } });
    await host.sendEvents(run, notes(1, 3));
    expect((await hello("b")).body).toMatchObject({ next: 4 });
  });

  test("of another version is refused", async () => {
    const answer = await hello("a", 2);
    expect(answer).toMatchObject({ status: 400, body: { code: "invalid_request" } });
    expect(answer.body).toMatchObject({ message: expect.stringContaining("version 2") });
  });

  test("before the host has opened the run is told to retry", async () => {
    const later = newId("run");
    const early = await host.send(later, "POST", "/run/hello", { version: 1, instance: "a" });
    expect(early).toMatchObject({ status: 503, body: { code: "provider_unavailable", retry: "later" } });
    await host.channel.open({ id: later, task });
    expect(await host.send(later, "POST", "/run/hello", { version: 1, instance: "a" })).toMatchObject({ status: 200 });
  });
});

describe("events", () => {
  test("are kept in order and acknowledged by the next number", async () => {
    expect(await host.sendEvents(run, notes(1, 2))).toMatchObject({ status: 200, body: { next: 3 } });
    expect(await host.sendEvents(run, notes(3, 3))).toMatchObject({ status: 200, body: { next: 4 } });
    expect(await host.stored(run)).toEqual(notes(1, 3));
  });

  test("that are repeated are acknowledged and kept once", async () => {
    await host.sendEvents(run, notes(1, 3));
    expect(await host.sendEvents(run, notes(2, 5))).toMatchObject({ status: 200, body: { next: 6 } });
    expect(await host.sendEvents(run, notes(1, 5))).toMatchObject({ status: 200, body: { next: 6 } });
    expect(await host.stored(run)).toEqual(notes(1, 5));
  });

  test.each([
    ["a gap before them", () => notes(5, 6)],
    ["a gap among them", () => [note(3), note(5)]],
    ["a turned order", () => [note(4), note(3)]],
    ["a number twice", () => [note(3), note(3)]],
  ])("with %s are refused with the next number, and none is kept", async (_, events) => {
    await host.sendEvents(run, notes(1, 2));
    expect(await host.sendEvents(run, events())).toMatchObject({
      status: 400,
      body: { code: "event_rejected", next: 3 },
    });
    expect(await host.stored(run)).toEqual(notes(1, 2));
  });

  test("of concurrent batches never mix", async () => {
    const batches = Array.from({ length: 20 }, (_, i) => notes(i * 10 + 1, i * 10 + 15));
    let answers = [];
    do answers = await Promise.all(batches.map((batch) => host.sendEvents(run, batch)));
    while (answers.some(({ status }) => status !== 200));
    expect(await host.stored(run)).toEqual(notes(1, 205));
  });

  test("with other content under a used number end the run as tampered, and none is kept", async () => {
    await host.sendEvents(run, notes(1, 3));
    const answer = await host.sendEvents(run, [note(2), note(3, "forged"), note(4)]);
    expect(answer).toMatchObject({ status: 410, body: { code: "run_ended", next: 4 } });
    expect(await host.channel.ended(run)).toMatchObject({ reason: "tampered" });
    expect(await host.stored(run)).toEqual(notes(1, 3));
  });

  test("of a replaced runner end the run as tampered if their content differs", async () => {
    await hello("first");
    await host.sendEvents(run, notes(1, 2));
    await hello("second");
    await host.sendEvents(run, [note(3, "of the second")]);
    await host.sendEvents(run, [note(3, "of the first")]);
    expect(await host.channel.ended(run)).toMatchObject({ reason: "tampered" });
  });

  test("after the end are refused, even in the batch that holds the end", async () => {
    const answer = await host.sendEvents(run, [note(1), end(2), note(3)]);
    expect(answer).toMatchObject({ status: 410, body: { code: "run_ended", next: 3 } });
    expect(await host.channel.ended(run)).toEqual(endAs("completed", "done"));
    expect(await host.sendEvents(run, [note(3)])).toMatchObject({ status: 410 });
    expect(await host.sendEvents(run, [note(1, "forged")])).toMatchObject({ status: 410 });
    expect(await hello("again")).toMatchObject({ status: 410 });
    expect(await host.send(run, "GET", "/run/control?after=0")).toMatchObject({ status: 410 });
    expect(await host.stored(run)).toEqual([note(1), end(2)]);
    expect(await host.channel.ended(run)).toMatchObject({ reason: "completed" });
  });

  test("beyond a run's limit end it as flooded", async () => {
    await using full = await startTestHost({
      wrapLog: (log) => ({ ...log, next: async () => runChannel.maxEventsPerRun }),
    });
    const flooding = await full.openRun();
    const last = note(runChannel.maxEventsPerRun);
    expect(await full.sendEvents(flooding, [last])).toMatchObject({ status: 410 });
    expect(await full.channel.ended(flooding)).toMatchObject({ reason: "flooded" });
  });

  test("beyond a run's limit of bytes end it as flooded", async () => {
    await using full = await startTestHost({
      wrapLog: (log) => ({ ...log, bytes: async () => runChannel.maxRunBytes - 10 }),
    });
    const flooding = await full.openRun();
    expect(await full.sendEvents(flooding, [note(1)])).toMatchObject({ status: 410 });
    expect(await full.channel.ended(flooding)).toMatchObject({ reason: "flooded" });
  });

  test("that the host cannot store are asked for again and do not end the run", async () => {
    let isFull = true;
    await using sick = await startTestHost({
      wrapLog: (log) => ({
        ...log,
        append: async (id, events) => {
          if (isFull) throw new Error("no space left on the device");
          return log.append(id, events);
        },
      }),
    });
    const waiting = await sick.openRun();
    expect(await sick.sendEvents(waiting, [note(1)])).toMatchObject({ status: 503 });
    expect(sick.failures).toEqual([expect.objectContaining({ message: "no space left on the device" })]);
    isFull = false;
    expect(await sick.sendEvents(waiting, [note(1)])).toMatchObject({ status: 200, body: { next: 2 } });
  });
});

describe("the host's code", () => {
  test("reads stored events, then new ones, and stops at the end", async () => {
    await host.sendEvents(run, notes(1, 2));
    const reader = host.channel.events(run, { after: 1 })[Symbol.asyncIterator]();
    expect((await reader.next()).value).toEqual(note(2));
    const third = reader.next();
    await host.sendEvents(run, [note(3), end(4)]);
    expect((await third).value).toEqual(note(3));
    expect((await reader.next()).value).toEqual(end(4));
    expect(await reader.next()).toEqual({ done: true, value: undefined });
  });

  test("that reads slowly delays nothing and misses nothing", async () => {
    const reader = host.channel.events(run)[Symbol.asyncIterator]();
    const first = reader.next();
    for (let from = 1; from <= 500; from += 100) await host.sendEvents(run, notes(from, from + 99));
    const seen = [await first];
    while (seen.length < 500) seen.push(await reader.next());
    expect(seen.map(({ value }) => value)).toEqual(notes(1, 500));
  });

  test("stops reading at its signal or when the run is closed", async () => {
    const controller = new AbortController();
    const aborted = Array.fromAsync(host.channel.events(run, { signal: controller.signal }));
    const closed = Array.fromAsync(host.channel.events(run));
    controller.abort();
    expect(await aborted).toEqual([]);
    host.channel.close(run);
    expect(await closed).toEqual([]);
  });

  test("ends a run once, for the first reason", async () => {
    await host.channel.fail(run, "budget", "the money is spent");
    await host.channel.fail(run, "timeout", "too late");
    expect(await host.channel.ended(run)).toEqual(endAs("budget", "the money is spent"));
    expect(await host.sendEvents(run, [note(1)])).toMatchObject({ status: 410, body: { code: "run_ended", next: 1 } });
  });

  test("finds runs unchanged after a restart of the host", async () => {
    const tampering = await host.openRun();
    const done = await host.openRun();
    await host.sendEvents(run, notes(1, 2));
    await host.channel.send(run, { type: "message", text: "go on" });
    await host.sendEvents(tampering, [note(1)]);
    await host.sendEvents(tampering, [note(1, "forged")]);
    await host.sendEvents(done, [end(1)]);
    const again = createRunChannel({ log: host.log, ...createFakeTime() });
    for (const id of [run, tampering, done]) await again.open({ id, task });
    expect(await again.ended(tampering)).toMatchObject({ reason: "tampered" });
    expect(await again.ended(done)).toEqual(endAs("completed", "done"));
    const reader = again.events(run)[Symbol.asyncIterator]();
    expect((await reader.next()).value).toEqual(note(1));
    await expect(again.send(done, { type: "cancel" })).rejects.toSatisfy((error) => hasCode(error, "run_ended"));
  });

  test("releases an ended run, which still learns that it has ended", async () => {
    await host.sendEvents(run, [end(1)]);
    host.channel.close(run);
    expect(await host.sendEvents(run, [note(2)])).toMatchObject({ status: 410, body: { code: "run_ended" } });
    await expect(host.channel.send(run, { type: "cancel" })).rejects.toThrow("not open");
  });
});

describe("silence", () => {
  const beat = runChannel.heartbeatMs;

  test("of three heartbeats ends the run as runner_lost", async () => {
    host.time.advance(3 * beat - 1);
    expect(host.channel.lastSeen(run)).toBeUndefined();
    host.time.advance(1);
    expect(await host.channel.ended(run)).toMatchObject({ reason: "runner_lost" });
    expect(host.time.waiting).toBe(0);
  });

  test("is broken by any request of the runner", async () => {
    for (let i = 0; i < 5; i++) {
      host.time.advance(2.9 * beat);
      await hello("a");
      expect(host.channel.lastSeen(run)).toBe(host.time.clock.now());
    }
    host.time.advance(3 * beat);
    expect(await host.sendEvents(run, [note(1)])).toMatchObject({ status: 200 });
    host.time.advance(4 * beat);
    expect(await host.channel.ended(run)).toMatchObject({ reason: "runner_lost" });
  });

  test("is not watched after the run has ended or is closed", async () => {
    const other = await host.openRun();
    await host.sendEvents(run, [end(1)]);
    host.channel.close(other);
    expect(host.time.waiting).toBe(0);
  });
});
