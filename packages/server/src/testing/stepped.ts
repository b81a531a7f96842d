import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { type BuildId, type BuildSettingsInput, buildSettingsSchema } from "@slipway/contract";
import { createFleet, createTick, newBuildDetails, type Store } from "@slipway/engine";
import { openDatabase, openStore } from "@slipway/store";
import type { SimulationSettings } from "../simulated/fate.ts";
import { createHost, createSimulation, type Simulation } from "../simulated/index.ts";
import { createManualClock, type ManualClock } from "../simulated/manual-clock.ts";
import { createWorldRecord, type WorldRecord } from "../simulated/testing/world-record.ts";

/** Builds of a simulated world, driven event by event: no time passes but what the events are apart. */
export interface SteppedWorld extends AsyncDisposable {
  readonly store: Store;
  readonly clock: ManualClock;
  readonly simulation: Simulation;
  readonly record: WorldRecord;
  create(id: BuildId, settings?: BuildSettingsInput): Promise<void>;
  ring(build: BuildId): void;
  /** Until nothing is left to happen, or `until` says so after a turn. */
  run(until?: (turn: TurnTaken) => boolean | Promise<boolean>): Promise<void>;
}

export interface TurnTaken {
  readonly build: BuildId;
  readonly over: boolean;
  /** Of the processor: how busy the machine is does not count. */
  readonly cpuMs: number;
}

/** In memory where that can be: no disk is waited for. */
const place = existsSync("/dev/shm") ? "/dev/shm" : tmpdir();
const by = { holder: "stepped", generation: 1 };

export async function openSteppedWorld(settings: SimulationSettings, slots = 1000): Promise<SteppedWorld> {
  const directory = mkdtempSync(join(place, "slipway-stepped-"));
  const database = openDatabase({ url: `file:${join(directory, "slipway.db")}` });
  const clock = createManualClock();
  const store = await openStore(database, clock, clock);
  const record = createWorldRecord();
  /** When each build wakes by itself, or because it was rung. */
  const wakes = new Map<BuildId, number>();
  const ring = (build: BuildId) => void (wakes.has(build) && wakes.set(build, clock.now()));
  const host = createHost({ store, ring });
  const simulation = createSimulation({ settings, clock, host, witness: record });
  const fleet = createFleet(slots, (build) => ring(build as BuildId));
  const tick = createTick({ store, work: simulation, fleet, clock });

  const turn = async (build: BuildId): Promise<TurnTaken> => {
    const began = process.cpuUsage();
    // Rung from now on, it has another turn.
    wakes.set(build, Number.POSITIVE_INFINITY);
    const result = await tick(build, by, null);
    const { user, system } = process.cpuUsage(began);
    if (result.over) wakes.delete(build);
    else wakes.set(build, Math.min(wakes.get(build) ?? 0, clock.now() + result.waitMs));
    return { build, over: result.over, cpuMs: (user + system) / 1000 };
  };
  const due = () => [...wakes].filter(([, atMs]) => atMs <= clock.now()).map(([build]) => build);

  return {
    store,
    clock,
    simulation,
    record,
    async create(id, given = {}) {
      const accepted = buildSettingsSchema.parse(given);
      const details = newBuildDetails(accepted, "none", clock.now());
      const build = { id, account: "ada", project: id, mode: "new", request: "a packing list", details } as const;
      await store.builds.create(build, accepted.budgetMicroUsd, { type: "build.created" });
      wakes.set(id, clock.now());
    },
    ring,
    async run(until = () => false) {
      while (wakes.size > 0) {
        for (const build of due()) {
          if (await until(await turn(build))) return;
          await simulation.settled();
        }
        if (due().length > 0) continue;
        const nextAt = Math.min(clock.nextAt ?? Number.POSITIVE_INFINITY, ...wakes.values());
        if (nextAt === Number.POSITIVE_INFINITY) return;
        await clock.advance(nextAt - clock.now());
        await simulation.settled();
      }
    },
    async [Symbol.asyncDispose]() {
      await database[Symbol.asyncDispose]();
      rmSync(directory, { recursive: true });
    },
  };
}
