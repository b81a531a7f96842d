import { readFileSync, renameSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { startRedisServer } from "@slipway/store/testing/redis";
import { isAlive, parseStat } from "../durable/process.ts";
import { type CoordinatorProcess, type CoordinatorSettings, startCoordinator } from "./coordinator.ts";
import { openServedWorld, type ServedWorld, type ServedWorldSettings } from "./served-world.ts";

export const faults = ["coordinator", "restate", "restate-and-its-data", "redis", "coordinator-and-restate"] as const;
export type Fault = (typeof faults)[number];

/** A simulated world, and around it what can be killed: a coordinator, its Restate, and Redis. */
export interface CrashWorld extends ServedWorld {
  readonly redisUrl: string;
  /** The one that runs now. */
  readonly coordinator: CoordinatorProcess;
  /** Of the Restate that runs now. */
  readonly restateAdminUrl: string;
  /** What is killed with -9 is started again at once. */
  strike(fault: Fault): Promise<void>;
}

export async function openCrashWorld(settings: ServedWorldSettings): Promise<CrashWorld> {
  await using parts = new AsyncDisposableStack();
  const served = parts.use(await openServedWorld(settings));
  const redis = parts.use(await startRedisServer());
  const { databaseUrl, worldSocket, speed } = served;
  const restateDirectory = join(served.directory, "restate");
  const coordinatorSettings: CoordinatorSettings = {
    ...{ name: "server-1", databaseUrl, redisUrl: redis.url, restate: { directory: restateDirectory } },
    ...{ worldSocket, speed, leaseMs: 75_000 },
  };
  let coordinator = startCoordinator(coordinatorSettings);
  parts.defer(() => coordinator[Symbol.asyncDispose]());
  await coordinator.ready;

  const killCoordinator = async () => {
    await coordinator.kill();
    coordinator = startCoordinator(coordinatorSettings);
  };
  const strike = async (fault: Fault): Promise<void> => {
    switch (fault) {
      case "coordinator":
        await killCoordinator();
        break;
      case "restate":
        killRestate(restateDirectory);
        break;
      case "restate-and-its-data":
        loseData(restateDirectory);
        killRestate(restateDirectory);
        break;
      case "coordinator-and-restate":
        killRestate(restateDirectory);
        await killCoordinator();
        break;
      case "redis":
        await redis.kill();
        await redis.start("lost");
    }
  };
  const opened = parts.move();
  return {
    ...{ ...served, redisUrl: redis.url, strike },
    get coordinator() {
      return coordinator;
    },
    get restateAdminUrl() {
      return `http://127.0.0.1:${JSON.parse(readNote(restateDirectory)[1]).ports.admin}`;
    },
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}

/** By what its starter left; while it is being started there may be none. */
function killRestate(directory: string): void {
  const noted = parseStat(readNote(directory)[0]);
  if (noted !== undefined && isAlive(noted)) process.kill(noted.pid, "SIGKILL");
}

/** Its process, and where it listens. */
function readNote(directory: string): readonly [string, string] {
  const [stat = "", json = ""] = readFileSync(join(directory, "restate.process"), "utf8").split("\n");
  return [stat, json];
}

let losses = 0;

/** In one step: nobody starts with a part of it. */
function loseData(directory: string): void {
  try {
    renameSync(join(directory, "data"), join(directory, `lost-${++losses}`));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
  }
}
