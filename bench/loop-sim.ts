import { spawn } from "node:child_process";
import { monitorEventLoopDelay } from "node:perf_hooks";
import process from "node:process";
import { text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { createReports, openCoordinator } from "@slipway/server/coordinator";
import { createHost, createScaledClock, createSimulation, usualWorld } from "@slipway/server/simulated";
import { createBuild, openSite } from "./loop-site.ts";
import type { Report } from "./measure.ts";

const slots = 20;
const delayMs = 30_000;
const program = fileURLToPath(import.meta.url);

interface Measured {
  readonly heapKb: number;
  readonly delayP99Ms: number;
}

/** Builds with 20 simulated sandboxes each, all on one coordinator, with SQLite. */
export async function measureSimulated(report: Report): Promise<void> {
  const few = await measureApart(5000);
  const many = await measureApart(20_000);
  for (const [count, { heapKb, delayP99Ms }] of [
    [5000, few],
    [20_000, many],
  ] as const) {
    const figure = { baseline: null, n: count, bound: {} };
    report({ name: `sim_heap_kb_${count}`, value: heapKb, unit: "kB", ours: heapKb, ...figure });
    report({ name: `sim_loop_delay_p99_ms_${count}`, value: delayP99Ms, unit: "ms", ours: delayP99Ms, ...figure });
  }
  const growth = { ours: many.heapKb, baseline: few.heapKb, n: 20_000 };
  report({ name: "sim_growth", value: many.heapKb / few.heapKb, unit: "ratio", ...growth, bound: { atMost: 1.2 } });
}

/** In a process of its own, whose heap holds nothing else. */
async function measureApart(sandboxes: number): Promise<Measured> {
  const args = ["--expose-gc", "--max-old-space-size=8192", program, String(sandboxes)];
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
  return JSON.parse(await text(child.stdout)) as Measured;
}

async function measure(sandboxes: number): Promise<Measured> {
  await using site = await openSite();
  const { store } = site;
  using clock = createScaledClock({ startMs: Date.now(), factor: 1 });
  const world = { ...usualWorld, tasks: [24, 24], edgeProbability: 0, estimateMinutes: [5, 60] } as const;
  const reports = createReports(store);
  const simulation = createSimulation({ settings: world, clock, host: createHost({ store, ring: reports.ring }) });
  await using _ = await openCoordinator({
    store,
    reports,
    work: simulation,
    name: "bench",
    slots: sandboxes,
    clock: Date,
    warn: console.error,
  });
  const before = heapUsed();
  for (let made = 0; made < sandboxes; made += slots) reports.ring(await createBuild(store, { slots }));
  const alive = () => simulation.alive().length;
  // Of so many, some have ended already and their successors are just being started.
  while (alive() < 0.99 * sandboxes) await sleep(200);
  const delay = monitorEventLoopDelay({ resolution: 1 });
  delay.enable();
  await sleep(delayMs);
  delay.disable();
  return { heapKb: (heapUsed() - before) / 1024 / sandboxes, delayP99Ms: delay.percentile(99) / 1e6 };
}

function heapUsed(): number {
  globalThis.gc?.();
  return process.memoryUsage().heapUsed;
}

if (process.argv[1] === program) {
  process.stdout.write(JSON.stringify(await measure(Number(process.argv[2]))));
  process.exit(0);
}
