import { readFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";

/** A process by pid and start time: a pid alone may have become another process. */
export interface ProcessIdentity {
  readonly pid: number;
  readonly startTime: string;
}

/** From a line of `/proc/<pid>/stat`. */
export function parseStat(line: string): (ProcessIdentity & { readonly zombie: boolean }) | undefined {
  // The second field is the program's name in parentheses and may hold anything; fields are counted after it.
  const fields = line.slice(line.lastIndexOf(")") + 2).split(" ");
  const pid = Number.parseInt(line, 10);
  const startTime = fields[19];
  if (!(pid > 0) || startTime === undefined) return undefined;
  // A process of many threads is a zombie as soon as its first one has ended; the others still hold its files and locks.
  const threads = Number(fields[17]);
  return { pid, startTime, zombie: (fields[0] === "Z" && threads <= 1) || fields[0] === "X" };
}

export function isAlive({ pid, startTime }: ProcessIdentity): boolean {
  try {
    const found = parseStat(readFileSync(`/proc/${pid}/stat`, "latin1"));
    return found !== undefined && !found.zombie && found.startTime === startTime;
  } catch {
    return false;
  }
}

/** Answers whether the process is gone within so long. */
async function hasEnded(identity: ProcessIdentity, limitMs: number): Promise<boolean> {
  for (const endMs = performance.now() + limitMs; isAlive(identity); await delay(20)) {
    if (performance.now() > endMs) return false;
  }
  return true;
}

/** TERM, and KILL when it is still there after so long. */
export async function endProcess(identity: ProcessIdentity, graceMs: number): Promise<void> {
  send(identity, "SIGTERM");
  if (await hasEnded(identity, graceMs)) return;
  send(identity, "SIGKILL");
  await hasEnded(identity, Number.POSITIVE_INFINITY);
}

function send(identity: ProcessIdentity, signal: NodeJS.Signals): void {
  if (!isAlive(identity)) return;
  try {
    process.kill(identity.pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}
