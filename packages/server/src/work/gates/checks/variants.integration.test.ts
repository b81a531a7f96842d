import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { openWorld, type WorldWith } from "../../../testing/world.ts";
import { type Dress, mutated, readApps, readMutants, refusalsOf } from "./testing/variants.ts";

vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 });

const apps = await readApps();
const mutants = await readMutants();
let world: WorldWith<"sandboxes" | "repository" | "gates">;
beforeAll(async () => {
  world = await openWorld({ sandboxes: "local", repository: {}, gates: {} });
});
afterAll(() => world[Symbol.asyncDispose]());

test.concurrent.each<[string, Dress]>([["web-components", "wordy"]])("%s is sound, whoever wrote it and however it looks (%s)", async (app, dress) => {
  expect(await refusalsOf(world.provider, apps.get(app) ?? new Map(), { dress })).toEqual([]);
});

test.concurrent.each(["others not told"])("an app with one fault is refused: %s", async (kind) => {
  const mutant = mutants.find((one) => one.kind === kind);
  if (mutant === undefined) throw new Error(`there is no mutant with ${kind}`);
  const refusals = await refusalsOf(world.provider, mutated(apps.get(mutant.app) ?? new Map(), mutant));
  expect(refusals.map((text) => text.split("\n", 1)[0])).not.toEqual([]);
});
