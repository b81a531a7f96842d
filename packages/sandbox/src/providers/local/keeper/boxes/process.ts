import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { SlipwayError } from "@slipway/contract";

/** A process by pid and start time: a pid alone may have become another process. */
export interface ProcessIdentity {
  readonly pid: number;
  readonly startTime: string;
}

export function identify(pid: number): ProcessIdentity | null {
  const stat = readStat(pid);
  return stat === null || stat.zombie ? null : { pid, startTime: stat.startTime };
}

export function isAlive({ pid, startTime }: ProcessIdentity): boolean {
  const stat = readStat(pid);
  return stat !== null && !stat.zombie && stat.startTime === startTime;
}

function readStat(pid: number): { startTime: string; zombie: boolean } | null {
  let text: string;
  try {
    text = readFileSync(`/proc/${pid}/stat`, "latin1");
  } catch {
    return null;
  }
  // The second field is the program's name in parentheses and may hold anything; fields are counted after it.
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
  // One whose first thread has ended is gone when the others are.
  const zombie = (fields[0] === "Z" && Number(fields[17]) <= 1) || fields[0] === "X";
  return { startTime: fields[19] ?? "", zombie };
}

/** Those that share the pid namespace of this process, itself included. */
export function namespaceOf({ pid }: ProcessIdentity, among: readonly number[]): number[] {
  const namespace = pidNamespace(pid);
  return namespace === null ? [] : among.filter((other) => pidNamespace(other) === namespace);
}

export function allProcesses(): number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number);
}

function pidNamespace(pid: number): string | null {
  try {
    return readlinkSync(`/proc/${pid}/ns/pid`);
  } catch {
    return null;
  }
}

/** Waits at most so long; answers whether the process is gone. */
export async function hasEnded(identity: ProcessIdentity, limitMs: number): Promise<boolean> {
  for (let waitedMs = 0, stepMs = 1; isAlive(identity); waitedMs += stepMs, stepMs = Math.min(stepMs * 2, 50)) {
    if (waitedMs > limitMs) return false;
    await delay(stepMs);
  }
  return true;
}

const endLimitMs = 20_000;

/** KILL to pid 1 of a sandbox ends its whole pid namespace; it is gone only after all the others are. */
export async function endProcess(identity: ProcessIdentity): Promise<void> {
  if (!isAlive(identity)) return;
  try {
    process.kill(identity.pid, "SIGKILL");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
  if (!(await hasEnded(identity, endLimitMs))) {
    throw new SlipwayError("internal", `process ${identity.pid} does not end ${endLimitMs / 1000} s after KILL`);
  }
}
