import { startRedisServer } from "@slipway/store/testing/redis";
import { startRestate } from "../drive/restate/testing.ts";
import { type CoordinatorProcess, type CoordinatorSettings, startCoordinator } from "./coordinator.ts";
import { openServedWorld, type ServedWorld, type ServedWorldSettings } from "./served-world.ts";

export type DriveName = "timers" | "restate";
export type Fault = "coordinator" | "redis" | "restate" | "restate-and-its-data" | "coordinator-and-restate";

/** What can be killed, by what drives the builds. */
export const faultsOf: Readonly<Record<DriveName, readonly Fault[]>> = {
  timers: ["coordinator", "redis"],
  restate: ["coordinator", "redis", "restate", "restate-and-its-data", "coordinator-and-restate"],
};

/** A simulated world, and around it what can be killed: a coordinator, Redis, and Restate where that drives the builds. */
export interface CrashWorld extends ServedWorld {
  readonly redisUrl: string;
  /** The one that runs now. */
  readonly coordinator: CoordinatorProcess;
  /** What is killed with -9 is started again at once. */
  strike(fault: Fault): Promise<void>;
}

export async function openCrashWorld(settings: ServedWorldSettings, drive: DriveName): Promise<CrashWorld> {
  await using parts = new AsyncDisposableStack();
  const served = parts.use(await openServedWorld(settings));
  const redis = parts.use(await startRedisServer());
  const restate = drive === "restate" ? parts.use(await startRestate()) : undefined;
  const { databaseUrl, worldSocket, speed } = served;
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
  parts.defer(() => coordinator[Symbol.asyncDispose]());
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
  const opened = parts.move();
  return {
    ...served,
    redisUrl: redis.url,
    strike,
    get coordinator() {
      return coordinator;
    },
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}
