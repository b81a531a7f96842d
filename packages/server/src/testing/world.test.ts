import { existsSync } from "node:fs";
import { planner } from "@slipway/gateway/scripted";
import { expect, test } from "vitest";
import { stillClock } from "./world/place.ts";
import { openWorld } from "./world.ts";

test("a world has what it names, and a store below it, until its end", async () => {
  const world = await openWorld({ clock: stillClock(5), model: planner });
  await using _ = world;
  const { id } = await world.create();
  expect((await world.store.builds.get(id)).createdAt).toBe(5);
  expect(world.asked).toEqual([]);
  expect(Object.keys(world)).not.toContain("provider");
  await world[Symbol.asyncDispose]();
  expect(existsSync(world.directory)).toBe(false);
});

test("types refuse what a world has not, what is no part, and a part without what it stands on", () => {
  const refused = [
    // @ts-expect-error
    async () => (await openWorld({ store: {} })).socketPath,
    // @ts-expect-error
    async () => await openWorld({ stores: {} }),
    // @ts-expect-error
    async () => await openWorld({ model: planner, attempts: {} }),
    // @ts-expect-error
    async () => await openWorld({ ticks: {} }),
  ];
  expect(refused).toHaveLength(4);
});
