import process from "node:process";
import type { BuildId } from "@slipway/contract";
import { createFleet, createTick } from "@slipway/engine";
import type { SimulationSettings } from "../../simulated/fate.ts";
import { createHost, createSimulation } from "../../simulated/index.ts";
import type { ManualClock } from "../../simulated/manual-clock.ts";
import { createWorldRecord } from "../../simulated/testing/world-record.ts";
import { driver, type NewBuild, type StorePart } from "./store.ts";

export interface TurnTaken {
  readonly build: BuildId;
  readonly over: boolean;
  /** Of the processor: how busy the machine is does not count. */
  readonly cpuMs: number;
}

/** Builds of a simulated world, driven event by event: no time passes but what the events are apart. */
export async function openSteps(
  settings: SimulationSettings,
  { clock, store, create }: StorePart & { readonly clock: ManualClock },
) {
  const record = createWorldRecord();
  /** When each build wakes by itself, or because it was rung. */
  const wakes = new Map<BuildId, number>();
  const ring = (build: BuildId) => void (wakes.has(build) && wakes.set(build, clock.now()));
  const host = createHost({ store, ring });
  const simulation = createSimulation({ settings, clock, host, witness: record });
  const fleet = createFleet(1000, (build) => ring(build as BuildId));
  const tick = createTick({ store, work: simulation, fleet, clock });

  const turn = async (build: BuildId): Promise<TurnTaken> => {
    const began = process.cpuUsage();
    // Rung from now on, it has another turn.
    wakes.set(build, Number.POSITIVE_INFINITY);
    const result = await tick(build, driver, null);
    const { user, system } = process.cpuUsage(began);
    if (result.over) wakes.delete(build);
    else wakes.set(build, Math.min(wakes.get(build) ?? 0, clock.now() + result.waitMs));
    return { build, over: result.over, cpuMs: (user + system) / 1000 };
  };
  const due = () => [...wakes].filter(([, atMs]) => atMs <= clock.now()).map(([build]) => build);

  return {
    simulation,
    record,
    async start(build: NewBuild): Promise<void> {
      wakes.set((await create(build)).id, clock.now());
    },
    ring,
    /** Until nothing is left to happen, or `until` says so after a turn. */
    async run(until: (turn: TurnTaken) => boolean | Promise<boolean> = () => false): Promise<void> {
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
  };
}
