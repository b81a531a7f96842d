import { randomUUID } from "node:crypto";
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";

const variable = "SLIPWAY_PROCESS_MARK";
const lookMs = 20;
/** After a KILL. Gives up a process that the kernel holds longer. */
const killMs = 5_000;

/**
 * Finds a program's processes however they were forked: by a mark in their environment, by the program's session, and
 * by their parents. A process that drops all three escapes it, and ends with the sandbox.
 */
export interface ProcessMark {
  /** For the started program, with `detached: true`. */
  readonly environment: Readonly<Record<string, string>>;
  /** Sends TERM, then KILL after the grace. Resolves to whether all of them are gone. */
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

/** Ends what the marked programs of dead processes have left running. */
export async function endOrphans(graceMs = 2_000): Promise<boolean> {
  const own = look(process.pid)?.namespace;
  const isOrphan = ({ mark, namespace }: Process): boolean => {
    // Another pid namespace has its own ids.
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
  // A process in the middle of an exec has no readable environment.
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
      // Signal only what was forked since the last look.
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
  /** In ticks since boot. Together with the pid it identifies a process. */
  readonly startedAt: string;
  readonly namespace: string;
  readonly mark: string | undefined;
}

/** Synchronous: /proc answers from memory, and a slow look misses new forks. */
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

/** Undefined for a process that is gone, has ended, or belongs to another user. */
function look(pid: number): Process | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
    const environment = readFileSync(`/proc/${pid}/environ`, "latin1").split("\0");
    const mark = environment.find((entry) => entry.startsWith(`${variable}=`))?.slice(variable.length + 1);
    // The name is in parentheses and may contain anything: fields start after the last one.
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    const [state, parent, , session] = fields;
    // A zombie leader still counts while its other threads run.
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
      // It has ended meanwhile.
    }
  }
}
