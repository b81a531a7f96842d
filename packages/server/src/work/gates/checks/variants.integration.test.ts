import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { openWorld, type WorldWith } from "../../../testing/world.ts";
import { mutated, readApps, readMutants, refusalsOf } from "./testing/variants.ts";

vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 });

const apps = await readApps();
const mutants = await readMutants();
let world: WorldWith<"sandboxes" | "repository" | "gates">;
beforeAll(async () => {
  world = await openWorld({ sandboxes: "local", repository: {}, gates: {} });
});
afterAll(() => world[Symbol.asyncDispose]());

test.concurrent("a sound app is accepted, whoever wrote it and however it looks", async () => {
  const app = apps.get("web-components") ?? new Map();
  expect(await refusalsOf(world.provider, app, { dress: "wordy" })).toEqual([]);
});

test.concurrent("an app with one fault is refused", async () => {
  const mutant = mutants.find(({ kind }) => kind === "others not told");
  if (mutant === undefined) throw new Error("there is no mutant that tells others nothing");
  const refusals = await refusalsOf(world.provider, mutated(apps.get(mutant.app) ?? new Map(), mutant));
  expect(refusals.map((text) => text.split("\n", 1)[0])).not.toEqual([]);
});
