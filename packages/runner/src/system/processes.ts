import { randomUUID } from "node:crypto";
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
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
  const mark = `${ownIdentity()} ${randomUUID()}`;
  return {
    environment: { [variable]: mark },
    end: ({ leader, graceMs = 2_000 } = {}) =>
      endAll((entry) => entry.mark === mark || entry.session === leader, graceMs),
  };
}

/** Ends what marked programs of processes that are dead have left running. */
export async function endOrphans(graceMs = 2_000): Promise<boolean> {
  const own = look(process.pid)?.namespace;
  const isOrphan = ({ mark, namespace }: Process): boolean => {
    // Another namespace has its own process ids.
    if (mark === undefined || namespace !== own) return false;
    const [owner, startedAt] = mark.split(" ");
    return look(Number(owner))?.startedAt !== startedAt;
  };
  return await endAll(isOrphan, graceMs);
}

async function endAll(isRoot: (entry: Process) => boolean, graceMs: number): Promise<boolean> {
  const killAt = performance.now() + graceMs;
  let firstKillAt = Number.POSITIVE_INFINITY;
  const told = new Set<number>();
  // A process that is just becoming another program has no environment to be known by.
  for (let looksInVain = 0; ; ) {
    const members = find(isRoot);
    looksInVain = members.length === 0 ? looksInVain + 1 : 0;
    if (looksInVain === 2) return true;
    const now = performance.now();
    if (now >= firstKillAt + killMs) return false;
    if (now >= killAt) {
      firstKillAt = Math.min(firstKillAt, now);
      signalAll(members, "SIGKILL");
    } else {
      // What was forked since the last look has not been told.
      const untold = members.filter((pid) => !told.has(pid));
      signalAll(untold, "SIGTERM");
    }
    for (const pid of members) told.add(pid);
    await delay(lookMs);
  }
}

interface Process {
  readonly pid: number;
  readonly parent: number;
  readonly session: number;
  /** In ticks since the machine's start: with the id, the same process and no later one. */
  readonly startedAt: string;
  readonly namespace: string;
  readonly mark: string | undefined;
}

/** Read without waiting: /proc answers from memory, and a look that takes long misses what is forked meanwhile. */
function find(isRoot: (entry: Process) => boolean): readonly number[] {
  const pids = readdirSync("/proc")
    .map(Number)
    .filter((pid) => pid > 1 && pid !== process.pid);
  const found = pids.map((pid) => look(pid)).filter((entry) => entry !== undefined);
  const members = new Set(found.filter(isRoot).map((entry) => entry.pid));
  for (let before = -1; before !== members.size; ) {
    before = members.size;
    for (const entry of found) if (members.has(entry.parent)) members.add(entry.pid);
  }
  return [...members];
}

/** Undefined for a process that is gone, has ended, or is another user's. */
function look(pid: number): Process | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
    const environment = readFileSync(`/proc/${pid}/environ`, "latin1").split("\0");
    const mark = environment.find((entry) => entry.startsWith(`${variable}=`))?.slice(variable.length + 1);
    // The name stands in parentheses and may hold anything: the fields begin after the last one.
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    const [state, parent, , session] = fields;
    // One whose first thread has ended is gone when the others are.
    if ((state === "Z" && Number(fields[17]) <= 1) || state === "X") return undefined;
    const namespace = readlinkSync(`/proc/${pid}/ns/pid`);
    return { pid, parent: Number(parent), session: Number(session), startedAt: fields[19] ?? "", namespace, mark };
  } catch {
    return undefined;
  }
}

function ownIdentity(): string {
  return `${process.pid} ${look(process.pid)?.startedAt}`;
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
