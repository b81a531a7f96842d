import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { basename } from "node:path";
import { type ProcessIdentity, parseStat } from "../work/repository/quarantine/process.ts";

/** A process of this machine, as far as it can be told what it belongs to. */
export interface FoundProcess extends ProcessIdentity {
  readonly parent: number;
  readonly argv: readonly string[];
  readonly cwd: string;
}

function allProcesses(): FoundProcess[] {
  return readdirSync("/proc").flatMap((name) => (/^\d+$/.test(name) ? (read(name) ?? []) : []));
}

function read(pid: string): FoundProcess | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
    const identity = parseStat(stat);
    if (identity === undefined || identity.zombie) return undefined;
    const parent = Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[1]);
    const argv = readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0").slice(0, -1);
    return { pid: identity.pid, startTime: identity.startTime, parent, argv, cwd: cwdOf(pid) };
  } catch {
    // It has ended meanwhile.
    return undefined;
  }
}

function cwdOf(pid: string): string {
  try {
    return readlinkSync(`/proc/${pid}/cwd`);
  } catch {
    return "";
  }
}

/** Those that name the directory, and all that descends from them. */
export function processesOf(directory: string): FoundProcess[] {
  const all = allProcesses();
  const own = new Map(
    all.filter(({ argv, cwd }) => argv.some((one) => one.includes(directory)) || cwd.startsWith(directory)).map(byPid),
  );
  for (let before = -1; before < own.size; ) {
    before = own.size;
    for (const one of all) if (own.has(one.parent)) own.set(one.pid, one);
  }
  return [...own.values()];
}

/** Mounts that have to do with the directory, in whatever namespace a process has them to itself. */
export function mountsOf(directory: string): string[] {
  return allProcesses().flatMap(({ pid }) =>
    mountsSeenBy(pid)
      .filter((mount) => mount.includes(directory))
      .map((mount) => `${pid} ${mount}`),
  );
}

function mountsSeenBy(pid: number): string[] {
  try {
    return readFileSync(`/proc/${pid}/mountinfo`, "utf8").split("\n");
  } catch {
    // It has ended meanwhile, or is another user's.
    return [];
  }
}

/** Sandboxes that run, by the outer bubblewrap's command line, each with the pid of its first process. */
export function sandboxesOf(directory: string): { readonly id: string; readonly init: FoundProcess }[] {
  const all = processesOf(directory);
  return all.flatMap(({ pid, argv }) => {
    const id = argv
      .map((one) => /\/boxes\/(sbx_[0-9a-z]+)(?:\/|$)/.exec(one)?.[1])
      .find((found) => found !== undefined);
    const init = all.find(({ parent }) => parent === pid);
    return basename(argv[0] ?? "") === "bwrap" && id !== undefined && init !== undefined ? [{ id, init }] : [];
  });
}

/** What runs inside of a sandbox, by its first process. */
export function descendantsOf(init: ProcessIdentity): FoundProcess[] {
  const all = allProcesses();
  const own = new Map(all.filter(({ parent }) => parent === init.pid).map(byPid));
  for (let before = -1; before < own.size; ) {
    before = own.size;
    for (const one of all) if (own.has(one.parent)) own.set(one.pid, one);
  }
  return [...own.values()];
}

function byPid(found: FoundProcess): [number, FoundProcess] {
  return [found.pid, found];
}
