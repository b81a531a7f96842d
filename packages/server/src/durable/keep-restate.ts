import { constants } from "node:fs";
import { access, mkdir, realpath, rm } from "node:fs/promises";
import { createRequire } from "node:module";
import { setTimeout as delay } from "node:timers/promises";
import { SlipwayError, settingsError } from "@slipway/contract";
import { openIdentity, type RequestIdentity, writeIdentity } from "./identity.ts";
import type { Restate } from "./restate.ts";
import {
  adoptRestate,
  boundLog,
  dataPath,
  endRestate,
  freePorts,
  type RestatePorts,
  type RestateProcess,
  spawnRestate,
  whenLost,
} from "./restate-process.ts";

/** Ends with its disposal, not with this process: the next server of the directory takes it up again. */
export type KeptRestate = Restate & AsyncDisposable & { readonly pid: number };

export interface KeepRestateOptions {
  /** Its data, its log and its key. One server at a time keeps a Restate in a directory. */
  readonly directory: string;
  readonly program?: string | undefined;
  readonly warn?: ((message: string) => void) | undefined;
}

const tries = 3;
const longestRetryMs = 5_000;
const logCheckMs = 10_000;
const mostLogBytes = 8 * 1024 * 1024;

/** Takes up the directory's Restate, or starts one, and starts it again whenever it dies. */
export async function startRestate(options: KeepRestateOptions): Promise<KeptRestate> {
  const { program = restateProgram(), warn = () => undefined } = options;
  await access(program, constants.X_OK).catch((cause) => {
    throw new SlipwayError("component_missing", `${program} can not be run: ${cause.message}`, { cause });
  });
  const directory = await openDirectory(options.directory);
  const identity = await openIdentity(directory);
  const place = { directory, identity, program };
  let current = await bringUp(place, undefined);
  const listeners = new Set<() => void>();
  const ending = new AbortController();
  const { signal } = ending;

  const bringBack = async (): Promise<RestateProcess> => {
    for (let waitMs = 100; ; waitMs = Math.min(2 * waitMs, longestRetryMs)) {
      try {
        return await bringUp(place, current.ports);
      } catch (error) {
        warn(`Restate has died and does not start again: ${(error as Error).message}`);
        await delay(waitMs, undefined, { ref: false, signal });
      }
    }
  };
  const keep = async () => {
    for (;;) {
      await whenLost(current, directory, signal);
      current = await bringBack();
      for (const listener of listeners) listener();
    }
  };
  // It ends by the signal only.
  const keeping = keep().catch(() => undefined);
  const logCheck = setInterval(() => void boundLog(directory, mostLogBytes).catch(() => undefined), logCheckMs).unref();

  return {
    get ingressUrl() {
      return current.ingressUrl;
    },
    get adminUrl() {
      return current.adminUrl;
    },
    get pid() {
      return current.pid;
    },
    identityKey: identity.publicKey,
    onRestart(listener) {
      listeners.add(listener);
      return { [Symbol.dispose]: () => void listeners.delete(listener) };
    },
    async [Symbol.asyncDispose]() {
      clearInterval(logCheck);
      ending.abort();
      await keeping;
      await endRestate(current);
    },
  };
}

interface Place {
  readonly directory: string;
  readonly identity: RequestIdentity;
  readonly program: string;
}

/** At its former ports where they are free, and in the end without the data that it may not be able to start with. */
async function bringUp(
  { directory, identity, program }: Place,
  former: RestatePorts | undefined,
): Promise<RestateProcess> {
  const identityKey = identity.publicKey;
  for (let left = tries; ; left--) {
    const identityPath = await writeIdentity(directory, identity);
    const running = await adoptRestate(directory, identityKey);
    if (running !== undefined) return running;
    const ports = left === tries && former !== undefined ? former : await freePorts();
    if (left === 1) await rm(dataPath(directory), { recursive: true, force: true });
    try {
      return await spawnRestate({ program, directory, identityKey, identityPath, ports });
    } catch (error) {
      if (left === 1) throw error;
    }
  }
}

async function openDirectory(directory: string): Promise<string> {
  try {
    await mkdir(directory, { recursive: true, mode: 0o700 });
    await access(directory, constants.R_OK | constants.W_OK | constants.X_OK);
    return await realpath(directory);
  } catch (cause) {
    throw settingsError([`SLIPWAY_STATE_DIR: Restate can not keep its data in it: ${(cause as Error).message}`]);
  }
}

/** Each platform's binary is a package of its own, and npm installs the one that fits. */
function restateProgram(): string {
  const platform = `${process.platform}-${process.arch}`;
  try {
    return createRequire(import.meta.url).resolve(`@restatedev/restate-server-${platform}/bin/restate-server`);
  } catch (cause) {
    throw new SlipwayError(
      "component_missing",
      `Restate's server is not installed for ${platform}. Run \`npm run setup\`, or set RESTATE_URL.`,
      { cause },
    );
  }
}
