import { expect, test } from "vitest";
import { drivenBuild } from "./context.ts";
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
    expect(await store.events.find(build, "b")).toMatchObject({ sequence: 3, key: "b" });
    expect(await store.events.find(build, "d")).toBeUndefined();
    expect(await store.events.find(other, "b")).toBeUndefined();
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
    const pages = [await store.events.read(build, 0), await store.events.read(build, 1000)];
    expect(pages.flat().map(({ sequence }) => sequence)).toEqual(Array.from({ length: 1235 }, (_, index) => index + 1));
  });
}
