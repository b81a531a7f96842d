import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { type Client, createClient } from "@slipway/client";
import { type Health, hasCode, SlipwayError, serverFiles } from "@slipway/contract";
import { startInBackground } from "./start.ts";
import { changedSettings, type ServerStart } from "./started-with.ts";

export interface ConnectOptions extends ServerStart {
  readonly signal: AbortSignal;
  /** There is no server yet, and one is started. */
  onStart(): void;
  /** The one that runs was started with other values of these settings. */
  onOther(names: readonly string[]): void;
}

/** Another command line may be starting one at the same time. */
const otherStartMs = 120_000;
const retryMs = 100;

/** The server of the state directory; one is started when none runs. */
export async function connectServer({ onStart, onOther, signal, ...start }: ConnectOptions): Promise<Client> {
  const client = clientOf(start.stateDir);
  const running = await findHealth(client, signal);
  if (running !== undefined) {
    const changed = await changedSettings(start, running.pid);
    if (changed.length > 0) onOther(changed);
    return client;
  }
  onStart();
  try {
    await startInBackground(start, signal);
  } catch (error) {
    if (!hasCode(error, "server_running")) throw error;
    const deadline = performance.now() + otherStartMs;
    while (!(await isThere(client, signal))) {
      if (performance.now() > deadline) throw error;
      await delay(retryMs, undefined, { signal });
    }
  }
  return client;
}

export function clientOf(stateDir: string): Client {
  return createClient({ socketPath: join(stateDir, serverFiles.socket) });
}

const answerMs = 30_000;

export async function isThere(client: Client, signal: AbortSignal): Promise<boolean> {
  return (await findHealth(client, signal)) !== undefined;
}

/** Undefined: there is no server. */
export async function findHealth(client: Client, signal: AbortSignal): Promise<Health | undefined> {
  const limit = AbortSignal.timeout(answerMs);
  try {
    return await client.health({ signal: AbortSignal.any([signal, limit]) });
  } catch (error) {
    if (hasCode(error, "server_unavailable")) return undefined;
    if (signal.aborted || !limit.aborted) throw error;
    throw new SlipwayError("server_unavailable", `the server has not answered for ${answerMs / 1000} s`, {
      cause: error,
    });
  }
}
