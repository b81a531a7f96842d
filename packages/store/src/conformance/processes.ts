import type { BuildId } from "@slipway/contract";
import { expect, test } from "vitest";
import { drivenBuild } from "./context.ts";
import { spawnReporter } from "./reporter.ts";
import type { OpenedStore } from "./subject.ts";

/** For databases that learn of the death of a process that used them. */
export function describeProcesses(opened: () => OpenedStore): void {
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
    const acknowledged = new Set(reporters.flatMap((reporter) => reporter.acknowledged));
    const refused = reporters.reduce((sum, { busy }) => sum + busy, 0);
    expect(acknowledged.size + refused).toBe(300);
    expect(acknowledged.size).toBeGreaterThan(150);
    expect(met).toEqual(upTo(1 + acknowledged.size * 3));
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
    expect(await store.events.report(build, [{ type: "attempt.reported" }])).toBe(2 + 4 * calls);
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
      // A database server may still take in what it was last sent.
      const all = await readAll(opened(), build);
      expect(all).toEqual(upTo(all.length));
      expect(all.length).toBeGreaterThanOrEqual(lastEvent);
      expect((all.length - 1) % 4).toBe(0);
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
