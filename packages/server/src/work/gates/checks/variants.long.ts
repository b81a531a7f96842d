import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { openWorld, type WorldWith } from "../../../testing/world.ts";
import { dresses, mutated, readApps, readMutants, refusalsOf } from "./testing/variants.ts";

vi.setConfig({ testTimeout: 600_000, hookTimeout: 300_000 });

const apps = await readApps();
const mutants = await readMutants();
const variants = [...apps.keys()].flatMap((app) => dresses.map((dress) => ({ app, dress })));

let world: WorldWith<"sandboxes" | "repository" | "gates">;
const counts = { accepted: 0, refused: 0 };
beforeAll(async () => {
  world = await openWorld({ sandboxes: "local", repository: {}, gates: {} });
});
afterAll(async () => {
  await world[Symbol.asyncDispose]();
  process.stdout.write(
    `checks accept ${counts.accepted} of ${variants.length} sound variants and refuse ${counts.refused} of ${mutants.length} mutants\n`,
  );
});

test.concurrent.each(variants)(
  "$app is sound, whoever wrote it and however it looks ($dress)",
  async ({ app, dress }) => {
    const refusals = await refusalsOf(world.provider, apps.get(app) ?? new Map(), { dress });
    expect(refusals).toEqual([]);
    counts.accepted++;
  },
);

test.concurrent.each(mutants)("$app is refused: $name", async (mutant) => {
  const refusals = await refusalsOf(world.provider, mutated(apps.get(mutant.app) ?? new Map(), mutant));
  expect(refusals).not.toEqual([]);
  counts.refused++;
});
