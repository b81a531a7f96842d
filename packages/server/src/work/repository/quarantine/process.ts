import { readFileSync } from "node:fs";

/** A process by pid and start time: a pid alone may have become another process. */
export interface ProcessIdentity {
  readonly pid: number;
  readonly startTime: string;
}

/** From a line of `/proc/<pid>/stat`. */
export function parseStat(line: string): (ProcessIdentity & { readonly zombie: boolean }) | undefined {
  // The second field is the program's name in parentheses and may hold anything, so count fields after it.
  const fields = line.slice(line.lastIndexOf(")") + 2).split(" ");
  const pid = Number.parseInt(line, 10);
  const startTime = fields[19];
  if (!(pid > 0) || startTime === undefined) return undefined;
  // A process with threads is a zombie once its first thread ended, but the others still hold its files and locks.
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
