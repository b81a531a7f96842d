import type { BuildId } from "@slipway/contract";
import { expect, test } from "vitest";
import { drivenBuild } from "./context.ts";
import { spawnReporter } from "./reporter.ts";
import type { OpenedStore } from "./subject.ts";

export function describeEvents(opened: () => OpenedStore): void {
  const event = (key: string | null = null) => ({ type: "attempt.reported", key });

  test("events are numbered without gaps and read from any number on", async () => {
    const { store, clock } = opened();
    const build = await drivenBuild(store);
    expect(await store.events.report(build, [event(), event()])).toBe(3);
    clock.advance(5);
    expect(await store.events.report(build, [event()])).toBe(4);
    expect(await store.events.report(build, [])).toBe(4);
    const read = await store.events.read(build, 2);
    expect(read.map(({ sequence, at }) => [sequence, at])).toEqual([
      [3, clock.now() - 5],
      [4, clock.now()],
    ]);
    expect(await store.events.read(build, 0, { limit: 2 })).toHaveLength(2);
    expect(await store.events.read(build, 4)).toEqual([]);
  });

  test("what is reported twice under its key is there once", async () => {
    const { store } = opened();
    const build = await drivenBuild(store);
    await store.events.report(build, [event("a"), event("b"), event("a")]);
    expect(await store.events.report(build, [event("b"), event("c")])).toBe(4);
    const other = await drivenBuild(store);
    expect(await store.events.report(other, [event("a")])).toBe(2);
    const keys = (await store.events.read(build, 1)).map(({ key }) => key);
    expect(keys).toEqual(["a", "b", "c"]);
  });

  test("a report with one bad event leaves nothing", async () => {
    const { store } = opened();
    const build = await drivenBuild(store);
    for (const bad of [
      { type: "no subject" },
      { type: "a.b", key: "" },
      { type: "a.b", data: { x: Number.NaN } },
      { type: "a.b", data: { text: "x".repeat(5_000_000) } },
    ]) {
      await expect(store.events.report(build, [event(), bad])).rejects.toMatchObject({ code: "invalid_request" });
    }
    expect(await store.events.report(build, [event()])).toBe(2);
  });

  test("many events of one report are all there", async () => {
    const { store } = opened();
    const build = await drivenBuild(store);
    const many = Array.from({ length: 1234 }, (_, index) => event(`key-${index}`));
    expect(await store.events.report(build, many)).toBe(1235);
    expect(await readAll(opened(), build)).toEqual(upTo(1235));
  });

  test("two processes that report at once make no gap, and a reader meets none on its way", async () => {
    const { store, url } = opened();
    const build = await drivenBuild(store);
    const reporters = ["a", "b"].map((name) => spawnReporter({ url, build, name, calls: 150, eventsPerCall: 3 }));
    const ended = Promise.all(reporters.map((reporter) => reporter.ended()));
    let over = false;
    const done = ended.then(() => {
      over = true;
    });
    const met: number[] = [];
    for (let last = false; !last; ) {
      last = over;
      const page = await store.events.read(build, met.length);
      met.push(...page.map(({ sequence }) => sequence));
      // The reporters' words arrive between two reads.
      await new Promise((resolve) => setImmediate(resolve));
    }
    await done;
    expect(met).toEqual(upTo(1 + 2 * 150 * 3));
    const acknowledged = reporters.flatMap((reporter) => reporter.acknowledged);
    expect(new Set(acknowledged).size).toBe(300);
    expect(reporters.map(({ busy }) => busy)).toEqual([0, 0]);
  });

  test("a writer that is killed in the middle of a transaction loses nothing it was told is kept, and leaves no half", async () => {
    const { store, url } = opened();
    const build = await drivenBuild(store);
    const calls = 50;
    const reporter = spawnReporter({ url, build, name: "a", calls, eventsPerCall: 4, end: "open" });
    await reporter.said("open");
    await reporter.kill();
    expect(reporter.acknowledged).toHaveLength(calls);
    expect(await store.builds.get(build)).toMatchObject({ lastEvent: 1 + 4 * calls, request: "a shop" });
    expect(await store.events.report(build, [event()])).toBe(2 + 4 * calls);
    expect(await readAll(opened(), build)).toEqual(upTo(2 + 4 * calls));
  });

  test("a writer that is killed at any moment leaves whole reports only", async () => {
    const { store, url } = opened();
    const build = await drivenBuild(store);
    for (let round = 0; round < 3; round++) {
      const reporter = spawnReporter({ url, build, name: `r${round}`, calls: 1_000_000, eventsPerCall: 4 });
      await reporter.said("ok");
      await reporter.kill();
      const { lastEvent } = await store.builds.get(build);
      expect((lastEvent - 1) % 4).toBe(0);
      expect(lastEvent).toBeGreaterThanOrEqual(reporter.acknowledged.at(-1) ?? 0);
      expect(await readAll(opened(), build)).toEqual(upTo(lastEvent));
    }
  });
}

async function readAll({ store }: OpenedStore, build: BuildId): Promise<number[]> {
  const all: number[] = [];
  for (;;) {
    const page = await store.events.read(build, all.at(-1) ?? 0);
    if (page.length === 0) return all;
    all.push(...page.map(({ sequence }) => sequence));
  }
}

function upTo(last: number): number[] {
  return Array.from({ length: last }, (_, index) => index + 1);
}
