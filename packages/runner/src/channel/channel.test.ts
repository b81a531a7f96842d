import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { endAs, hasCode, type NumberedEvent } from "@slipway/contract";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { type Channel, type ChannelOptions, openChannel } from "./channel.ts";
import { startRelay } from "./relay.ts";
import { ended, note, text } from "./testing/events.ts";
import { startTestHost, type TestHost } from "./testing/host.ts";
import { createTestPlace, type TestPlace } from "./testing/place.ts";
import { createTransport } from "./transport.ts";

let place: TestPlace;
let host: TestHost;
let channel: Channel;

const open = (options: Partial<ChannelOptions> = {}) =>
  openChannel({
    transport: createTransport({ socketPath: place.socketPath, token: host.run.token }),
    directory: place.spool,
    instance: crypto.randomUUID(),
    ...options,
  });
const reopen = async () => {
  await channel[Symbol.asyncDispose]();
  channel = await open();
};

beforeEach(async () => {
  place = createTestPlace();
  host = await startTestHost(place.directory, place.run);
  channel = await open();
});
afterEach(async () => {
  await channel[Symbol.asyncDispose]();
  await host[Symbol.asyncDispose]();
  place[Symbol.dispose]();
});

const notesOf = (events: readonly NumberedEvent[]) =>
  events.flatMap(({ event }) => (event.type === "note" ? event.text : []));

test("a hello returns the run and its task", async () => {
  expect(await channel.hello()).toMatchObject({ run: place.run, task: { prompt: "work" }, next: 1 });
});

test("emitted events reach the host once and in order", async () => {
  await channel.hello();
  const sent = Array.from({ length: 1000 }, (_, i) => `note ${i}`);
  for (const each of sent) await channel.emit(note(each));
  await channel.emit(ended);
  await channel.flush();
  expect(notesOf(await host.stored())).toEqual(sent);
  expect(await host.run.ended).toEqual(endAs("completed", "done"));
});

test("an event is on disk before emit resolves", async () => {
  await channel.hello();
  await host[Symbol.asyncDispose]();
  await channel.emit(note("kept"));
  expect(readFileSync(join(place.spool, "events.jsonl"), "utf8")).toContain('"kept"');
});

test("a stream of words becomes few events, which are sent without waiting for more", async () => {
  await channel.hello();
  const words = Array.from({ length: 500 }, (_, i) => `word${i} `);
  for (const word of words) await channel.emit(text(word));
  await vi.waitFor(async () => {
    const events = await host.stored();
    const said = events.map(({ event }) =>
      event.type === "agent" && event.event.type === "text" ? event.event.text : "",
    );
    expect(said.join("")).toBe(words.join(""));
    expect(events.length).toBeLessThan(50);
  });
});

test("messages from the host's absence arrive when it is back", async () => {
  await channel.hello();
  await channel.emit(note("before"));
  await channel.flush();
  await host[Symbol.asyncDispose]();
  for (let i = 0; i < 600; i++) await channel.emit(note(`away ${i}`));
  host = await startTestHost(place.directory, place.run);
  await channel.emit(note("after"));
  await channel.flush();
  const expected = ["before", ...Array.from({ length: 600 }, (_, i) => `away ${i}`), "after"];
  expect(notesOf(await host.stored())).toEqual(expected);
});

test("a hello waits until the host is up", async () => {
  await host[Symbol.asyncDispose]();
  const hello = channel.hello();
  host = await startTestHost(place.directory, place.run);
  expect(await hello).toMatchObject({ run: place.run });
});

test("a restarted runner sends what it had not sent", async () => {
  await channel.hello();
  await channel.emit(note("sent"));
  await channel.flush();
  await host[Symbol.asyncDispose]();
  await channel.emit(note("not sent"));
  await reopen();
  host = await startTestHost(place.directory, place.run);
  expect(await channel.hello()).toMatchObject({ next: 2 });
  await channel.emit(note("new"));
  await channel.flush();
  expect(notesOf(await host.stored())).toEqual(["sent", "not sent", "new"]);
});

test("a runner with an older disk continues after what the host has", async () => {
  await channel.hello();
  for (const each of ["a", "b", "c"]) await channel.emit(note(each));
  await channel.flush();
  await channel[Symbol.asyncDispose]();
  channel = await open({ directory: join(place.directory, "fresh") });
  expect(await channel.hello()).toMatchObject({ next: 4 });
  await channel.emit(note("d"));
  await channel.flush();
  expect(notesOf(await host.stored())).toEqual(["a", "b", "c", "d"]);
});

test("a host that has lost events gets them again", async () => {
  await channel.hello();
  for (const each of ["a", "b", "c"]) await channel.emit(note(each));
  await channel.flush();
  await host[Symbol.asyncDispose]();
  rmSync(join(place.directory, "log"), { recursive: true });
  host = await startTestHost(place.directory, place.run);
  await channel.emit(note("d"));
  await channel.flush();
  expect(notesOf(await host.stored())).toEqual(["a", "b", "c", "d"]);
});

test("a host at an address is spoken to like one at a socket", async () => {
  const relay = await startRelay(place.socketPath);
  const url = `http://127.0.0.1:${relay.port}`;
  await using remote = await openChannel({
    transport: createTransport({ url, token: host.run.token }),
    directory: join(place.directory, "remote"),
    instance: "remote",
  });
  await remote.hello();
  await remote.emit(note("from afar"));
  await remote.flush();
  expect(notesOf(await host.stored())).toEqual(["from afar"]);
  await relay.close();
});

test("a runner waits when it sends more than the host takes at once", async () => {
  await channel.hello();
  const sent = Array.from({ length: 9000 }, (_, i) => String(i));
  await Promise.all(sent.map((each) => channel.emit(note(each))));
  await channel.flush();
  expect(notesOf(await host.stored())).toEqual(sent);
});

describe("the host's messages", () => {
  test("come in order, including those sent before", async () => {
    await host.run.send({ type: "message", text: "first" });
    const messages = channel.controls(new AbortController().signal)[Symbol.asyncIterator]();
    expect((await messages.next()).value).toEqual({ sequence: 1, type: "message", text: "first" });
    const second = messages.next();
    await host.run.send({ type: "interrupt" });
    expect((await second).value).toEqual({ sequence: 2, type: "interrupt" });
  });

  test("are handed out once, across restarts of both sides", async () => {
    for (const each of ["one", "two", "three"]) await host.run.send({ type: "message", text: each });
    const before = channel.controls(new AbortController().signal)[Symbol.asyncIterator]();
    await before.next();
    await before.next();
    await reopen();
    await host[Symbol.asyncDispose]();
    const after = channel.controls(new AbortController().signal)[Symbol.asyncIterator]();
    const third = after.next();
    host = await startTestHost(place.directory, place.run);
    expect((await third).value).toMatchObject({ sequence: 3, text: "three" });
    await host.run.send({ type: "cancel" });
    expect((await after.next()).value).toEqual({ sequence: 4, type: "cancel" });
  });

  test("stop by the reader's signal", async () => {
    const controller = new AbortController();
    const all = Array.fromAsync(channel.controls(controller.signal));
    controller.abort();
    expect(await all).toEqual([]);
    expect(channel.signal.aborted).toBe(false);
  });
});

describe("a host that refuses the rest of a run", () => {
  const isEnd = (error: unknown) => hasCode(error, "run_ended");

  test("fails whoever listens, emits or flushes", async () => {
    await channel.hello();
    const controls = Array.fromAsync(channel.controls(new AbortController().signal));
    await host.run.fail("budget", "the money is spent");
    await expect(controls).rejects.toSatisfy(isEnd);
    expect(isEnd(channel.signal.reason)).toBe(true);
    await expect(channel.emit(note("late"))).rejects.toSatisfy(isEnd);
  });

  test("ends a flush that cannot finish", async () => {
    await channel.hello();
    await host.run.fail("timeout", "too long");
    await channel.emit(note("late"));
    await expect(channel.flush()).rejects.toSatisfy(isEnd);
  });

  test("because it has the run's end does not fail the last flush", async () => {
    await channel.hello();
    const controls = Array.fromAsync(channel.controls(new AbortController().signal));
    controls.catch(() => {});
    await channel.emit(ended);
    await channel.flush();
    await expect(controls).rejects.toSatisfy(isEnd);
    await channel.flush();
  });

  test("because someone else used the runner's numbers ends it as tampered", async () => {
    await channel.hello();
    await channel.emit(note("honest"));
    await channel.flush();
    const forger = await open({ directory: join(place.directory, "forger") });
    await forger.hello();
    await forger.emit(note("forged"));
    await forger.flush();
    await channel.emit(note("honest again"));
    await expect(channel.flush()).rejects.toSatisfy(isEnd);
    expect(await host.run.ended).toMatchObject({ reason: "tampered" });
    await forger[Symbol.asyncDispose]();
  });

  test("or does not know its token says so at the hello", async () => {
    const transport = createTransport({ socketPath: place.socketPath, token: "slr_none" });
    const stranger = await open({ transport, directory: join(place.directory, "stranger") });
    await expect(stranger.hello()).rejects.toSatisfy((error) => hasCode(error, "run_token_invalid"));
    await stranger[Symbol.asyncDispose]();
  });
});
