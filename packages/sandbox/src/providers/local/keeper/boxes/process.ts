import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { SlipwayError } from "@slipway/contract";

/** A process by pid and start time, because pids are reused. */
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
  // Fields are counted after the program's name, which is in parentheses and may hold anything.
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
  // A process whose first thread has ended lives as long as the other threads.
  const zombie = (fields[0] === "Z" && Number(fields[17]) <= 1) || fields[0] === "X";
  return { startTime: fields[19] ?? "", zombie };
}

/** The pids in the process's pid namespace, itself included. */
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

/** Whether the process ends within the limit. */
export async function hasEnded(identity: ProcessIdentity, limitMs: number): Promise<boolean> {
  for (let waitedMs = 0, stepMs = 1; isAlive(identity); waitedMs += stepMs, stepMs = Math.min(stepMs * 2, 50)) {
    if (waitedMs > limitMs) return false;
    await delay(stepMs);
  }
  return true;
}

const endLimitMs = 20_000;

/** Killing pid 1 of a sandbox kills its whole pid namespace; pid 1 is gone last. */
export async function endProcess(identity: ProcessIdentity): Promise<void> {
  if (!isAlive(identity)) return;
  try {
    process.kill(identity.pid, "SIGKILL");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
  if (!(await hasEnded(identity, endLimitMs))) {
    throw new SlipwayError("internal", `Process ${identity.pid} still runs ${endLimitMs / 1000} s after SIGKILL.`);
  }
}
