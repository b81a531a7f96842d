import { spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync, statSync } from "node:fs";
import { copyFile, readFile, stat, truncate } from "node:fs/promises";
import { type AddressInfo, createServer } from "node:net";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { printable, SlipwayError } from "@slipway/contract";
import { z } from "zod";
import { endProcess, isAlive, type ProcessIdentity, parseStat } from "./process.ts";
import { checkHealth, isOneRestate, type RestateAddress } from "./restate-api.ts";

/** One process of Restate's server, with its data in a directory. It outlives who started it. */
export interface RestateProcess extends ProcessIdentity, RestateAddress {
  readonly ports: RestatePorts;
}

const portsSchema = z.object({ ingress: z.int(), admin: z.int(), nodes: z.int() });
export type RestatePorts = Readonly<z.infer<typeof portsSchema>>;

/** What a starter leaves for those after it. */
const noteSchema = z.object({ ports: portsSchema, identityKey: z.string() });

export interface SpawnOptions {
  readonly program: string;
  readonly directory: string;
  readonly identityKey: string;
  readonly identityPath: string;
  readonly ports: RestatePorts;
}

const bootMs = 60_000;
const healthMs = 15_000;
const graceMs = 5_000;
const pollMs = 100;

/**
 * The process leaves its pid and start time before it becomes Restate: so there is no Restate that nobody knows of. It has
 * the directory's lock as long as it lives: one that comes too late, its starter maybe dead, does not replace what the
 * other one left.
 */
const script = `exec 9>"$1.lock" && flock -n 9 && read -r stat </proc/$$/stat && printf '%s\\n%s\\n' "$stat" "$2" >"$1" && shift 2 && exec "$@"`;

export async function spawnRestate(options: SpawnOptions): Promise<RestateProcess> {
  const { program, directory, identityKey, ports } = options;
  const log = openSync(logPath(directory), "a", 0o600);
  const note = JSON.stringify({ ports, identityKey });
  const argv = [program, "--base-dir", dataPath(directory), "--node-name", "slipway"];
  const child = spawn("/bin/sh", ["-c", script, "sh", notePath(directory), note, ...argv], {
    cwd: directory,
    env: environment(options),
    stdio: ["ignore", log, log],
    detached: true,
  });
  closeSync(log);
  child.unref();
  const exit = once(child, "exit").then(
    ([code, signal]) => `has ended by ${signal ?? `exit code ${code}`}`,
    (error: Error) => `can not be started: ${error.message}`,
  );
  const late = `is not ready after ${bootMs / 1000} s`;
  const address = addressOf(ports);
  const deadline = performance.now() + bootMs;
  for (;;) {
    const failure = (await Promise.race([exit, delay(20)])) ?? (performance.now() > deadline ? late : undefined);
    if (failure !== undefined) {
      child.kill("SIGKILL");
      throw new SlipwayError("loop_unavailable", `Restate ${failure}: ${await lastLines(directory)}`);
    }
    if (await Promise.race([isHealthy(address), exit.then(() => false)])) break;
  }
  const started = await readNote(directory);
  if (started === undefined) {
    child.kill("SIGKILL");
    throw new SlipwayError("loop_unavailable", `${directory} was deleted while Restate started`);
  }
  return started.process;
}

/** The one that runs in the directory and signs with this key, when it answers. One that does not is ended. */
export async function adoptRestate(directory: string, identityKey: string): Promise<RestateProcess | undefined> {
  const found = await readNote(directory);
  if (found === undefined || !isAlive(found.process)) return undefined;
  if (found.identityKey === identityKey && (await isHealthy(found.process))) return found.process;
  await endProcess(found.process, 0);
  return undefined;
}

export async function endRestate(running: RestateProcess): Promise<void> {
  await endProcess(running, graceMs);
}

/** Waits until it has died or its data was deleted, which it does not outlive for long, and is not there any more. */
export async function whenLost(running: RestateProcess, directory: string, signal: AbortSignal): Promise<void> {
  const data = inodeOf(dataPath(directory));
  while (isAlive(running) && data !== undefined && inodeOf(dataPath(directory)) === data) {
    await delay(pollMs, undefined, { ref: false, signal });
  }
  signal.throwIfAborted();
  await endProcess(running, 0);
}

function inodeOf(path: string): number | undefined {
  return statSync(path, { throwIfNoEntry: false })?.ino;
}

/** Free ones on loopback; another process may take them before Restate does. */
export async function freePorts(): Promise<RestatePorts> {
  const servers = [createServer(), createServer(), createServer()];
  for (const server of servers) await once(server.listen(0, "127.0.0.1"), "listening");
  const [ingress = 0, admin = 0, nodes = 0] = servers.map((server) => (server.address() as AddressInfo).port);
  for (const server of servers) await once(server.close(), "close");
  return { ingress, admin, nodes };
}

/** Restate appends to its log, so that it goes on at the beginning of a file that was cut. */
export async function boundLog(directory: string, mostBytes: number): Promise<void> {
  const path = logPath(directory);
  if ((await stat(path)).size <= mostBytes) return;
  await copyFile(path, `${path}.1`);
  await truncate(path);
}

/** What Restate keeps. All of it can be made anew from the store. */
export function dataPath(directory: string): string {
  return join(directory, "data");
}

function logPath(directory: string): string {
  return join(directory, "restate.log");
}

function notePath(directory: string): string {
  return join(directory, "restate.process");
}

/** Small, for one node that a laptop runs beside everything else. */
function environment({ ports, identityPath }: SpawnOptions): Record<string, string> {
  return {
    RESTATE_DISABLE_TELEMETRY: "true",
    RESTATE_LOG_FILTER: "warn",
    RESTATE_LOG_DISABLE_ANSI_CODES: "true",
    RESTATE_SHUTDOWN_TIMEOUT: "3s",
    // The paths of sockets have a limit that a directory may exceed.
    RESTATE_LISTEN_MODE: "tcp",
    RESTATE_BIND_ADDRESS: `127.0.0.1:${ports.nodes}`,
    RESTATE_INGRESS__BIND_ADDRESS: `127.0.0.1:${ports.ingress}`,
    RESTATE_ADMIN__BIND_ADDRESS: `127.0.0.1:${ports.admin}`,
    RESTATE_ADMIN__DISABLE_WEB_UI: "true",
    RESTATE_WORKER__INVOKER__REQUEST_IDENTITY_PRIVATE_KEY_PEM_FILE: identityPath,
    RESTATE_DEFAULT_NUM_PARTITIONS: "1",
    RESTATE_ROCKSDB_TOTAL_MEMORY_SIZE: "64 MiB",
    RESTATE_BIFROST__RECORD_CACHE_MEMORY_SIZE: "8 MiB",
    RESTATE_ADMIN__QUERY_ENGINE__MEMORY_SIZE: "64 MiB",
    RESTATE_DEFAULT_RETRY_POLICY__MAX_ATTEMPTS: "unlimited",
    // Each build that is driven counts as one.
    RESTATE_WORKER__INVOKER__CONCURRENT_INVOCATIONS_LIMIT: "100000",
    // What a loss of power takes from Restate comes from the store.
    RESTATE_LOG_SERVER__ROCKSDB_DISABLE_WAL_FSYNC: "true",
  };
}

function addressOf({ ingress, admin }: RestatePorts): RestateAddress {
  return { ingressUrl: `http://127.0.0.1:${ingress}/`, adminUrl: `http://127.0.0.1:${admin}/` };
}

async function isHealthy(address: RestateAddress): Promise<boolean> {
  try {
    const [isOne] = await Promise.all([isOneRestate(address, healthMs), checkHealth(address, healthMs)]);
    return isOne;
  } catch {
    return false;
  }
}

async function readNote(directory: string) {
  const text = await readFile(notePath(directory), "utf8").catch(() => "");
  const [stat = "", json = ""] = text.split("\n");
  const identity = parseStat(stat);
  const note = noteSchema.safeParse(tryJson(json)).data;
  if (identity === undefined || note === undefined) return undefined;
  const { pid, startTime } = identity;
  const process: RestateProcess = { pid, startTime, ports: note.ports, ...addressOf(note.ports) };
  return { process, identityKey: note.identityKey };
}

function tryJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

async function lastLines(directory: string): Promise<string> {
  const text = await readFile(logPath(directory), "utf8").catch(() => "");
  return printable(text.trimEnd().split("\n").slice(-5).join("\n")).slice(-2_000);
}
