import { startRedisServer } from "@slipway/store/testing/redis";
import { startRestate } from "../../drive/restate/testing.ts";
import { type CoordinatorSettings, startCoordinator } from "../coordinator.ts";
import type { SimulationPart } from "./simulation.ts";
import type { StorePart } from "./store.ts";

export type DriveName = "timers" | "restate";
export type Fault = "coordinator" | "redis" | "restate" | "restate-and-its-data" | "coordinator-and-restate";

/** What can be killed, by what drives the builds. */
export const faultsOf: Readonly<Record<DriveName, readonly Fault[]>> = {
  timers: ["coordinator", "redis"],
  restate: ["coordinator", "redis", "restate", "restate-and-its-data", "coordinator-and-restate"],
};

/** What can be killed around a simulated world: a coordinator, Redis, and Restate where that drives the builds. */
export async function openCrashingCoordinator(
  drive: DriveName,
  { databaseUrl, worldSocket, speed }: SimulationPart & StorePart,
  held: AsyncDisposableStack,
) {
  const redis = held.use(await startRedisServer());
  const restate = drive === "restate" ? held.use(await startRestate()) : undefined;
  const coordinatorSettings: CoordinatorSettings = {
    name: "server-1",
    databaseUrl,
    redisUrl: redis.url,
    restate: restate?.settings,
    worldSocket,
    speed,
    leaseMs: 75_000,
  };
  let coordinator = startCoordinator(coordinatorSettings);
  held.defer(() => coordinator[Symbol.asyncDispose]());
  await coordinator.ready;

  const killCoordinator = async () => {
    await coordinator.kill();
    coordinator = startCoordinator(coordinatorSettings);
  };
  /** One that starts while Restate is away says so and ends, so it is let start first. */
  const killRestate = async () => {
    await coordinator.ready;
    await restate?.kill();
  };
  const strike = async (fault: Fault): Promise<void> => {
    switch (fault) {
      case "coordinator":
        return await killCoordinator();
      case "restate":
        await killRestate();
        return await restate?.start();
      case "restate-and-its-data":
        await killRestate();
        restate?.loseData();
        return await restate?.start();
      case "coordinator-and-restate":
        await killRestate();
        await coordinator.kill();
        await restate?.start();
        coordinator = startCoordinator(coordinatorSettings);
        return;
      case "redis":
        await redis.kill();
        await redis.start("lost");
    }
  };
  return {
    redisUrl: redis.url,
    /** What is killed with -9 is started again at once. */
    strike,
    /** The one that runs now. */
    get coordinator() {
      return coordinator;
    },
  };
}
