import { expect, test } from "vitest";
import { type SimulationSettings, usualWorld } from "../simulated/fate.ts";
import { createManualClock } from "../simulated/manual-clock.ts";
import { allEvents } from "../testing/all-events.ts";
import { expectNothingLost, lasting } from "../testing/handovers.ts";
import { numberedBuild } from "../testing/numbered-build.ts";
import { openWorld } from "../testing/world.ts";

const hourMs = 3_600_000;

/** Tasks that are tried again and again until nothing is left to try. */
const stubborn: SimulationSettings = {
  ...usualWorld,
  seed: 3,
  tasks: [56, 56],
  edgeProbability: 0,
  steps: [1, 1],
  sigma: 0.3,
  estimateMinutes: [7, 7],
  stepMicroUsd: [1, 10],
  shares: { ...usualWorld.shares, failed: 0.11, interrupted: 0.88, died: 0.7 },
};

test("a build of a day with 5,000 outcomes does not slow down", async () => {
  await using world = await openWorld({ clock: createManualClock(), steps: stubborn });
  const build = numberedBuild(1);
  await world.start({ id: build, slots: 20, timeoutMs: 72 * hourMs });
  const beganMs = world.clock.now();
  const turns: number[] = [];
  await world.run(({ cpuMs }) => {
    turns.push(cpuMs);
    return false;
  });
  const outcomes = (await allEvents(world.store, build)).filter(({ type }) => type === "attempt.ended");
  expect(outcomes.length).toBeGreaterThanOrEqual(5000);
  expect(world.clock.now() - beganMs).toBeGreaterThanOrEqual(24 * hourMs);
  // The first turns are those of the stages, and of a process that is not warm yet.
  expect(medianOf(turns.slice(-500))).toBeLessThanOrEqual(2 * medianOf(turns.slice(0, 500)));
}, 600_000);

test("a build of several days goes on in the next lives of its sandboxes, and loses no finished step", async () => {
  const days: SimulationSettings = { ...lasting, tasks: [24, 24], estimateMinutes: [200, 240] };
  await using world = await openWorld({ clock: createManualClock(), steps: days });
  const build = numberedBuild(1);
  const beganMs = world.clock.now();
  await world.start({ id: build, timeoutMs: 700 * hourMs });
  await world.run();
  await expectNothingLost(world, build);
  expect(world.clock.now() - beganMs).toBeGreaterThan(3 * 24 * hourMs);
  const handovers = [...world.record.handovers.values()].reduce((sum, count) => sum + count);
  expect(handovers).toBeGreaterThan(48);
}, 600_000);

function medianOf(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;
}
