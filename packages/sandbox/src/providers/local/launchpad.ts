import { type ChildProcessByStdio, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import type { Socket } from "node:net";
import { join } from "node:path";
import { type Limits, SlipwayError } from "@slipway/contract";
import type { Cgroups } from "./cgroup.ts";
import { openCgroup } from "./cgroup-control.ts";
import { type Identity, parseLaunchStatus, type StartSpec, standbyArguments, startArguments } from "./launch.ts";

/**
 * Keeps a launcher standing by in control groups of its own: entering them takes the kernel longer than all the rest of
 * a start. What stands by holds nothing of a sandbox, and ends with this process.
 */
export interface Launchpad extends AsyncDisposable {
  reserve(): Reservation;
}

export interface Reservation {
  /** The groups that the sandbox will be in. Write them down before the start. */
  readonly cgroups: readonly string[];
  /** Resolves to the host's number of the sandbox's pid 1, once it takes connections. A failed start leaves no process. */
  start(spec: StartSpec, limits: StartLimits, options?: { readonly signal?: AbortSignal }): Promise<number>;
  /** Gives it up instead. */
  discard(): Promise<void>;
}

export type StartLimits = Pick<Limits, "cpu" | "memoryMb" | "processes">;

export interface LaunchpadOptions {
  /** The path of `slipway-launch`. */
  readonly program: string;
  readonly identity: Identity | null;
  readonly cgroups: Cgroups;
  /** A directory of the sandboxes' uid, on the file system of the boxes. */
  readonly spares: string;
}

/** A new sandbox's first command goes before the next launcher. */
const refillMs = 15;

export function createLaunchpad(options: LaunchpadOptions): Launchpad {
  let spare: Standby | null = standBy(options);
  let closed = false;
  const refill = () => {
    if (!closed) spare ??= standBy(options);
  };
  const refillLater = () => void setTimeout(refill, refillMs).unref();
  return {
    reserve() {
      const standby = spare?.alive() ? spare : standBy(options);
      if (spare === standby) spare = null;
      return {
        cgroups: standby.cgroups,
        start: (spec, limits, { signal } = {}) =>
          start(standby, spec, limits, options.cgroups, signal).finally(refillLater),
        discard: () => discard(standby),
      };
    },
    async [Symbol.asyncDispose]() {
      closed = true;
      if (spare !== null) await discard(spare);
      spare = null;
    },
  };
}

interface Standby {
  readonly name: string;
  readonly cgroups: readonly string[];
  /** The box that it has made ahead. */
  readonly spare: string;
  readonly child: ChildProcessByStdio<Socket, Socket, Socket>;
  alive(): boolean;
  /** What it has said on standard error. */
  complaint(): string;
}

const longestComplaint = 4096;

function standBy({ program, identity, cgroups, spares }: LaunchpadOptions): Standby {
  const name = randomBytes(8).toString("hex");
  const directories = cgroups.directories(name);
  // Made here, so that limits can be written before the launcher has come so far.
  for (const directory of directories) mkdirSync(directory);
  const spare = join(spares, name);
  const args = standbyArguments(identity, directories, spare);
  const stdio: ["pipe", "pipe", "pipe"] = ["pipe", "pipe", "pipe"];
  const child = spawn(program, args, { stdio, detached: true, env: {} }) as Standby["child"];
  let complaint = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    if (complaint.length < longestComplaint) complaint += text;
  });
  child.on("error", (error) => {
    complaint ||= error.message;
  });
  // A launcher that has ended takes no arguments; its end is told by `close`.
  child.stdin.on("error", () => {});
  // One that only stands by keeps nobody waiting.
  for (const handle of [child, child.stdin, child.stdout, child.stderr]) handle.unref();
  return {
    name,
    cgroups: directories,
    spare,
    child,
    alive: () => child.pid !== undefined && child.exitCode === null && child.signalCode === null,
    complaint: () => complaint.trim(),
  };
}

const startLimitMs = 30_000;

async function start(
  standby: Standby,
  spec: StartSpec,
  limits: StartLimits,
  cgroups: Cgroups,
  signal: AbortSignal | undefined,
): Promise<number> {
  const { child } = standby;
  const timeout = AbortSignal.timeout(startLimitMs);
  for (const pipe of [child.stdin, child.stdout, child.stderr]) pipe.ref();
  const status = readStatus(standby, signal === undefined ? timeout : AbortSignal.any([signal, timeout]));
  try {
    for (const { file, value } of cgroups.plan(standby.name, limits).sets) writeFileSync(file, value);
    child.stdin.end(
      startArguments(spec)
        .map((argument) => `${argument}\0`)
        .join(""),
    );
    return await status;
  } catch (cause) {
    status.catch(() => {});
    await discard(standby);
    if (signal?.aborted) throw new SlipwayError("aborted", "the start was given up", { cause });
    const words = timeout.aborted ? `the sandbox was not up after ${startLimitMs / 1000} s` : (cause as Error).message;
    throw new SlipwayError("sandbox_start_failed", standby.complaint() || words, { cause });
  } finally {
    child.stdout.destroy();
    child.stderr.destroy();
  }
}

function readStatus({ child, complaint }: Standby, signal: AbortSignal): Promise<number> {
  return new Promise((resolve, reject) => {
    let text = "";
    const giveUp = () => {
      const { childPid } = parseLaunchStatus(text);
      if (childPid !== null) killIfThere(childPid);
      reject(signal.reason as Error);
    };
    child.stdout.setEncoding("utf8").on("data", (more: string) => {
      text += more;
      const { childPid, ready } = parseLaunchStatus(text);
      if (!ready || childPid === null) return;
      signal.removeEventListener("abort", giveUp);
      resolve(childPid);
    });
    child.once("close", () => reject(new Error(complaint() || "the launcher ended without a word")));
    if (signal.aborted) giveUp();
    signal.addEventListener("abort", giveUp, { once: true });
  });
}

/** Ends whatever of it runs, also when the start had begun, and removes its groups. */
async function discard({ child, cgroups, spare, alive }: Standby): Promise<void> {
  child.stdin.destroy();
  // Bubblewrap's two processes are in one group until the inner one, set up, makes a session of its own.
  if (child.pid !== undefined && alive()) killIfThere(-child.pid);
  const cgroup = await openCgroup(cgroups);
  await cgroup.kill();
  await cgroup.remove();
  rmSync(spare, { recursive: true, force: true });
}

function killIfThere(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}
