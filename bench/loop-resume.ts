import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempDisposable } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { performance } from "node:perf_hooks";
import process from "node:process";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import type { BuildId } from "@slipway/contract";
import type { Store } from "@slipway/engine";
import { createScaledClock, usualWorld } from "@slipway/server/simulated";
import { serveSimulation } from "@slipway/server/testing/serve-simulation";
import { createBuild, openSite } from "./loop-site.ts";
import { median, type Report, ratio } from "./measure.ts";

const attempts = 20;
const rounds = 11;
const program = fileURLToPath(new URL("loop-coordinator.ts", import.meta.url));

/**
 * From the start of a coordinator's process until 20 attempts have been heard of, and from its death by -9 until the next
 * one has taken up all of them: with sandboxes that start in no time, and with some that take a while.
 */
export async function measureResume(report: Report): Promise<void> {
  const measured = await measureWith([0, 0]);
  report({ name: "resume_s", value: measured.ours, unit: "s", ...measured, bound: {} });
  ratio(report, "resume_vs_start", { atMost: 0.7 }, measured);
  ratio(report, "resume_vs_slow_start", {}, await measureWith([300, 1500]));
}

type StartMs = readonly [number, number];

/** Medians in seconds. */
async function measureWith(startMs: StartMs) {
  const starts: number[] = [];
  const resumes: number[] = [];
  await using cache = await mkdtempDisposable(join(tmpdir(), "slipway-cache-"));
  for (let round = -1; round < rounds; round++) {
    const times = await startAndResume(cache.path, startMs);
    // The first one compiles the sources.
    if (round < 0) continue;
    starts.push(times.startMs);
    resumes.push(times.resumeMs);
  }
  return { ours: median(resumes) / 1000, baseline: median(starts) / 1000, n: rounds };
}

async function startAndResume(cache: string, sandboxStartMs: StartMs) {
  await using site = await openSite();
  using clock = createScaledClock({ startMs: Date.now(), factor: 1 });
  const socketPath = join(site.directory, "world.sock");
  const settings = {
    ...usualWorld,
    tasks: [attempts, attempts],
    edgeProbability: 0,
    stageMs: [0, 0],
    startMs: sandboxStartMs,
  } as const;
  await using world = await serveSimulation(socketPath, { settings, clock });
  const env = { ...process.env, NODE_COMPILE_CACHE: cache };
  const run = () => spawn(process.execPath, [program, site.databaseUrl, socketPath], { stdio: "inherit", env });
  const build = await createBuild(site.store, { slots: attempts });

  const beganMs = performance.now();
  const first = run();
  while (!(await areWorking(site.store, build))) await sleep(10);
  const startMs = performance.now() - beganMs;

  const { promise: driven, resolve } = Promise.withResolvers<void>();
  const { reattach } = world.simulation;
  world.simulation.reattach = async (of, items) => {
    await reattach(of, items);
    if (items.length === attempts) resolve();
  };
  const killedMs = performance.now();
  first.kill("SIGKILL");
  const second = run();
  await driven;
  const resumeMs = performance.now() - killedMs;
  second.kill("SIGKILL");
  await once(second, "exit");
  return { startMs, resumeMs };
}

async function areWorking(store: Store, build: BuildId): Promise<boolean> {
  const reports = await store.events.read(build, 0, { source: "report" });
  return reports.filter(({ type }) => type === "attempt.heard").length === attempts;
}
