import { performance } from "node:perf_hooks";
import { setTimeout as sleep } from "node:timers/promises";
import { endAs } from "@slipway/contract";
import { type AttemptWork, type NewEvent, report as outcome, type Work } from "@slipway/engine";
import { createReports, openCoordinator } from "@slipway/server/coordinator";
import { createHost, createScaledClock, createSimulation, usualWorld } from "@slipway/server/simulated";
import { createBuild, openSite } from "./loop-site.ts";
import { median, type Report } from "./measure.ts";

const turns = 2010;
const slots = 20;
const plan = { tasks: [220, 220], edgeProbability: 0, stageMs: [0, 0] } as const;

/** From the report of an outcome to the end of the turn that acts on it, with SQLite: one outcome at a time. */
export async function measureTurns(report: Report): Promise<void> {
  await using site = await openSite();
  const { store } = site;
  const begun: AttemptWork[] = [];
  let onTurn = () => {};
  using clock = createScaledClock({ startMs: Date.now(), factor: 1 });
  const reports = createReports(store);
  const host = createHost({ store, ring: reports.ring });
  const planner = createSimulation({ settings: { ...usualWorld, ...plan }, clock, host });
  const work: Work = {
    async carryOut(build, items) {
      begun.push(...items.filter((item) => item.type === "attempt"));
      onTurn();
      await planner.carryOut(
        build,
        items.filter((item) => item.type === "stage"),
      );
    },
    reattach: planner.reattach,
    heardAtMs: () => Date.now(),
  };
  await using _ = await openCoordinator({
    store,
    reports,
    work,
    name: "bench",
    slots,
    clock: Date,
    warn: console.error,
  });
  const build = await createBuild(store, { slots });
  reports.ring(build);
  while (begun.length < slots) await sleep(50);

  const tell = async (event: NewEvent): Promise<number> => {
    const turn = new Promise<void>((resolve) => {
      onTurn = resolve;
    });
    const startMs = performance.now();
    await reports.report(build, [event]);
    await turn;
    return performance.now() - startMs;
  };
  const times: number[] = [];
  while (times.length < turns) {
    const { task, number: attempt, respawn } = begun.shift() ?? nothingLeft(times.length);
    const error = `error ${"x".repeat(1 + (times.length % 50))}`;
    times.push(
      await tell(outcome("attempt.ended", null, { task, attempt, respawn, end: endAs("checks_failed", error) })),
    );
  }
  const [early, late] = [median(times.slice(10, 30)), median(times.slice(-20))];
  const figure = { ours: late, baseline: early, n: turns };
  report({ name: "tick_ms", value: median(times), unit: "ms", ...figure, bound: {} });
  report({ name: "tick_growth", value: late / early, unit: "ratio", ...figure, bound: { atMost: 1.5 } });
}

function nothingLeft(count: number): never {
  throw new Error(`nothing is left to try after ${count} turns`);
}
