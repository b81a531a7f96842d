import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { type Client, createClient } from "@slipway/client";
import { type Health, hasCode, SlipwayError, serverFiles } from "@slipway/contract";
import { startInBackground } from "./start.ts";
import { changedSettings, type ServerStart } from "./started-with.ts";

export interface ConnectOptions extends ServerStart {
  readonly signal: AbortSignal;
  /** Called before a server is started. */
  onStart(): void;
  /** Called if the running server has other values of these settings. */
  onOther(names: readonly string[]): void;
}

/** How long to wait for a server that another command line is starting. */
const otherStartMs = 120_000;
const retryMs = 100;

/** Connects to the server of the state directory, starting one if needed. */
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
    while ((await findHealth(client, signal)) === undefined) {
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

/** Undefined if no server is running. */
export async function findHealth(client: Client, signal: AbortSignal): Promise<Health | undefined> {
  const limit = AbortSignal.timeout(answerMs);
  try {
    return await client.server.health({ signal: AbortSignal.any([signal, limit]) });
  } catch (error) {
    if (hasCode(error, "server_unavailable")) return undefined;
    if (signal.aborted || !limit.aborted) throw error;
    throw new SlipwayError("server_unavailable", `The server did not answer within ${answerMs / 1000} s.`, {
      cause: error,
    });
  }
}
