import { randomUUID } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";

const variable = "SLIPWAY_PROCESS_MARK";
const lookMs = 20;
/** After a KILL. A process that the kernel holds for longer is given up. */
const killMs = 5_000;

/**
 * Knows a program's processes however they were forked: by a mark in their environment, by the session that the program
 * leads, and by their parents. What drops all three is beyond it, and ends with the sandbox.
 */
export interface ProcessMark {
  /** For the program that is started, with `detached: true`. */
  readonly environment: Readonly<Record<string, string>>;
  /** TERM, then KILL after the grace. Answers when nothing is left; false: the kernel holds something. */
  end(options?: { readonly leader?: number | undefined; readonly graceMs?: number }): Promise<boolean>;
}

export function markProcesses(): ProcessMark {
  const id = randomUUID();
  const mark = `${variable}=${id}\0`;
  return {
    environment: { [variable]: id },
    async end({ leader, graceMs = 2_000 } = {}) {
      const killAt = performance.now() + graceMs;
      const told = new Set<number>();
      for (;;) {
        const members = find(mark, leader);
        if (members.length === 0) return true;
        if (performance.now() >= killAt + killMs) return false;
        if (performance.now() >= killAt) signalAll(members, "SIGKILL");
        // What was forked since the last look has not been told.
        else
          signalAll(
            members.filter((pid) => !told.has(pid)),
            "SIGTERM",
          );
        for (const pid of members) told.add(pid);
        await delay(lookMs);
      }
    },
  };
}

interface Process {
  readonly pid: number;
  readonly parent: number;
  readonly session: number;
  readonly marked: boolean;
}

/** Read without waiting: /proc answers from memory, and a look that takes long misses what is forked meanwhile. */
function find(mark: string, leader: number | undefined): readonly number[] {
  const pids = readdirSync("/proc")
    .map(Number)
    .filter((pid) => pid > 1 && pid !== process.pid);
  const found = pids.map((pid) => look(pid, mark)).filter((entry) => entry !== undefined);
  const members = new Set(found.filter((entry) => entry.marked || entry.session === leader).map((entry) => entry.pid));
  for (let before = -1; before !== members.size; ) {
    before = members.size;
    for (const entry of found) if (members.has(entry.parent)) members.add(entry.pid);
  }
  return [...members];
}

/** Undefined for a process that is gone, has ended, or is another user's. */
function look(pid: number, mark: string): Process | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
    const environment = readFileSync(`/proc/${pid}/environ`, "latin1");
    // The name stands in parentheses and may hold anything: the fields begin after the last one.
    const [state, parent, , session] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    if (state === "Z" || state === "X") return undefined;
    return { pid, parent: Number(parent), session: Number(session), marked: environment.includes(mark) };
  } catch {
    return undefined;
  }
}

function signalAll(pids: readonly number[], signal: NodeJS.Signals): void {
  for (const pid of pids) {
    try {
      process.kill(pid, signal);
    } catch {
      // It has ended since.
    }
  }
}
