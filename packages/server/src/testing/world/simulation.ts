import { join } from "node:path";
import { createScaledClock } from "../../simulated/clock.ts";
import type { SimulationSettings } from "../../simulated/fate.ts";
import { serveSimulation } from "../../simulated/testing/serve.ts";
import { createWorldRecord } from "../../simulated/testing/world-record.ts";
import type { Place } from "./place.ts";

export interface SimulationOptions {
  readonly settings: SimulationSettings;
  /** How much faster it goes than real time. */
  readonly factor: number;
}

export type SimulationPart = Awaited<ReturnType<typeof openSimulation>>;

/** Simulated sandboxes in this process, whose coordinators are other processes, and a clock that all of them go by. */
export async function openSimulation(
  { settings, factor }: SimulationOptions,
  { directory }: Pick<Place, "directory">,
  held: AsyncDisposableStack,
) {
  const speed = { startMs: Date.now(), factor };
  const clock = held.use(createScaledClock(speed));
  const record = createWorldRecord();
  const worldSocket = join(directory, "world.sock");
  const { simulation } = held.use(await serveSimulation(worldSocket, { settings, clock, witness: record }));
  return { speed, clock, record, worldSocket, simulation };
}
