import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type BuildId, type BuildSettingsInput, buildSettingsSchema } from "@slipway/contract";
import { newBuildDetails, type Store } from "@slipway/engine";
import { type Database, openDatabase, openStore } from "@slipway/store";
import { createScaledClock, type Speed } from "../simulated/clock.ts";
import type { SimulationSettings } from "../simulated/fate.ts";
import type { Simulation } from "../simulated/simulation.ts";
import { serveSimulation } from "../simulated/testing/serve.ts";
import { createWorldRecord, type WorldRecord } from "../simulated/testing/world-record.ts";

/** A simulated world in this process, whose coordinators are other processes, and the database that they share. */
export interface ServedWorld extends AsyncDisposable {
  /** Goes with the world. */
  readonly directory: string;
  readonly databaseUrl: string;
  readonly database: Database;
  readonly store: Store;
  readonly speed: Speed;
  readonly clock: { now(): number };
  readonly worldSocket: string;
  readonly simulation: Simulation;
  readonly record: WorldRecord;
  create(id: BuildId, settings: BuildSettingsInput): Promise<void>;
}

export interface ServedWorldSettings {
  readonly world: SimulationSettings;
  /** How much faster the world goes than real time. */
  readonly factor: number;
  /** A file of its own when left out. */
  readonly databaseUrl?: string;
}

export async function openServedWorld({ world, factor, ...given }: ServedWorldSettings): Promise<ServedWorld> {
  await using parts = new AsyncDisposableStack();
  const directory = mkdtempSync(join(tmpdir(), "slipway-world-"));
  parts.defer(() => rmSync(directory, { recursive: true, force: true, maxRetries: 5 }));
  const speed = { startMs: Date.now(), factor };
  const clock = parts.use(createScaledClock(speed));
  const { databaseUrl = `file:${join(directory, "slipway.db")}` } = given;
  const database = parts.use(openDatabase({ url: databaseUrl }));
  const store = await openStore(database, clock, clock);
  const record = createWorldRecord();
  const worldSocket = join(directory, "world.sock");
  const { simulation } = parts.use(await serveSimulation(worldSocket, { settings: world, clock, witness: record }));
  const opened = parts.move();
  return {
    directory,
    databaseUrl,
    database,
    store,
    speed,
    clock,
    worldSocket,
    simulation,
    record,
    async create(id, settings) {
      const accepted = buildSettingsSchema.parse(settings);
      const details = newBuildDetails(accepted, "none", clock.now());
      const build = { id, account: "ada", project: id, mode: "new", request: "a packing list", details } as const;
      await store.builds.create(build, accepted.budgetMicroUsd, { type: "build.created" });
    },
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}
