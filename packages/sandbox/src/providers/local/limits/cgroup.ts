import { constants, mkdir, readdir, readFile, rmdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Limits } from "@slipway/contract";
import { canAccess } from "../../../state-files.ts";
import { holdBase, removeAbandoned, removeBase } from "./base.ts";

export type LimitKind = "memory" | "cpu" | "pids" | "freeze";
export type Mechanism = "cgroup v1" | "cgroup v2" | "none";

/** Groups for the launcher to make, files to write then, and groups to enter last. */
export interface CgroupPlan {
  readonly directories: readonly string[];
  readonly sets: readonly { readonly file: string; readonly value: string }[];
}

export const noCgroups: CgroupPlan = { directories: [], sets: [] };

/** Where control groups can be made. Detecting it changes nothing. */
export interface CgroupPlaces {
  readonly mechanisms: Readonly<Record<LimitKind, Mechanism>>;
  /** Makes the groups' parents. Leaves out what the host refuses. `holder`: see `hold`. */
  prepare(parent?: string, holder?: number): Promise<Cgroups>;
}

export interface Cgroups {
  readonly mechanisms: Readonly<Record<LimitKind, Mechanism>>;
  /** Removes groups without processes that are not in `known`, such as those of a dead keeper. */
  sweep(known: ReadonlySet<string>): Promise<void>;
  /** Keeps the parents from others' `removeAbandoned` until the process ends. */
  hold(pid: number): Promise<void>;
  /** Removes the parents of others that nothing holds, and their groups without processes. */
  removeAbandoned(): Promise<void>;
  /** Removes the parents when the process that held them has ended, unless they have groups with processes. */
  leave(): Promise<void>;
  /** The groups of a sandbox of this name. */
  directories(name: string): string[];
  /** Keep the directories: a later process opens the groups by them. */
  plan(name: string, limits: Pick<Limits, "cpu" | "memoryMb" | "processes">): CgroupPlan;
}

/** `proc`: where to read `self/cgroup` and `self/mountinfo`. */
export async function detectCgroups({ proc = "/proc" }: { readonly proc?: string } = {}): Promise<CgroupPlaces> {
  const [own, mounts] = await Promise.all([readText(`${proc}/self/cgroup`), readText(`${proc}/self/mountinfo`)]);
  const hierarchies = parseHierarchies(own ?? "", mounts ?? "");
  const places = (await Promise.all(hierarchies.map(placeIn))).filter((place) => place !== null);
  return { mechanisms: mechanismsOf(places), prepare: (parent = "slipway", holder) => prepare(places, parent, holder) };
}

interface Hierarchy {
  readonly version: 1 | 2;
  readonly controllers: readonly string[];
  readonly mountPoint: string;
  /** The group this process is in. */
  readonly own: string;
}

/** A directory in which groups may be made. */
interface Place {
  readonly version: 1 | 2;
  readonly kinds: readonly LimitKind[];
  readonly base: string;
  /** Move the processes out of `base` first: else its children get no controllers. */
  readonly leave: boolean;
}

const controllerOf = { memory: "memory", cpu: "cpu", pids: "pids", freeze: "freezer" } as const satisfies Record<
  LimitKind,
  string
>;
const limitKinds = Object.keys(controllerOf) as LimitKind[];

/** The hierarchies of control groups that this process sees, v2 first. */
export function parseHierarchies(ownGroups: string, mountinfo: string): Hierarchy[] {
  const groups = ownGroups
    .split("\n")
    .map((line) => /^\d+:([^:]*):(.*)$/.exec(line))
    .filter((match) => match !== null)
    .map(([, names = "", path = "/"]) => ({ controllers: names === "" ? [] : names.split(","), path }));
  return mountinfo
    .split("\n")
    .flatMap((line): Hierarchy[] => {
      const [mount = "", filesystem = ""] = line.split(" - ");
      const [type, , options = ""] = filesystem.split(" ");
      const [, , , root = "/", mountPoint = "/"] = mount.split(" ");
      if (type !== "cgroup" && type !== "cgroup2") return [];
      const names = options.split(",");
      const group = groups.find(({ controllers }) =>
        type === "cgroup2" ? controllers.length === 0 : controllers.some((name) => names.includes(name)),
      );
      if (group === undefined) return [];
      return [
        {
          version: type === "cgroup2" ? 2 : 1,
          controllers: group.controllers,
          mountPoint,
          own: join(mountPoint, below(root, group.path)).replace(/\/$/, ""),
        },
      ];
    })
    .sort((a, b) => b.version - a.version);
}

/** In a cgroup namespace, the mount's root is the own group or an ancestor. */
function below(root: string, path: string): string {
  if (root === "/") return path.startsWith("/..") ? "/" : path;
  return path === root || path.startsWith(`${root}/`) ? path.slice(root.length) : "/";
}

async function placeIn(hierarchy: Hierarchy): Promise<Place | null> {
  if (hierarchy.version === 2) return placeInV2(hierarchy);
  const kinds = limitKinds.filter((kind) => hierarchy.controllers.includes(controllerOf[kind]));
  return kinds.length > 0 && (await canAccess(hierarchy.own, constants.W_OK))
    ? { version: 1, kinds, base: hierarchy.own, leave: false }
    : null;
}

/**
 * In v2, only the real root and groups without processes give their children controllers. So the own group, if it has
 * controllers, is emptied into a child; if others are in it, only when the real root is out of reach, as in a
 * container or a delegated group. Freezing needs no controllers.
 */
async function placeInV2({ own, mountPoint }: Hierarchy): Promise<Place | null> {
  const ownKinds = (await canAccess(own, constants.W_OK)) ? await kindsOfV2(own) : [];
  if (ownKinds.length > 0 && (await isRealRoot(own))) return { version: 2, kinds: ownKinds, base: own, leave: false };
  const rootInReach = (await isRealRoot(mountPoint)) && (await canAccess(mountPoint, constants.W_OK));
  const delegated = ownKinds.length > 1 && (await canAccess(join(own, "cgroup.subtree_control"), constants.W_OK));
  if (delegated && (!rootInReach || (await isAlone(own))))
    return { version: 2, kinds: ownKinds, base: own, leave: true };
  if (rootInReach) return { version: 2, kinds: await kindsOfV2(mountPoint), base: mountPoint, leave: false };
  return ownKinds.length > 0 ? { version: 2, kinds: ["freeze"], base: own, leave: false } : null;
}

async function isAlone(directory: string): Promise<boolean> {
  return (await processesIn(directory)).join() === String(process.pid);
}

async function processesIn(directory: string): Promise<string[]> {
  return ((await readText(join(directory, "cgroup.procs"))) ?? "").split("\n").filter(Boolean);
}

async function kindsOfV2(directory: string): Promise<LimitKind[]> {
  const controllers = (await readText(join(directory, "cgroup.controllers")))?.trim().split(" ") ?? [];
  return limitKinds.filter((kind) => kind === "freeze" || controllers.includes(controllerOf[kind]));
}

async function isRealRoot(directory: string): Promise<boolean> {
  return (await canAccess(join(directory, "cgroup.procs"))) && !(await canAccess(join(directory, "cgroup.type")));
}

async function prepare(places: readonly Place[], parent: string, holder?: number): Promise<Cgroups> {
  const parents: Place[] = [];
  for (const place of places) {
    const isNeeded = place.kinds.some((kind) => !parents.some(({ kinds }) => kinds.includes(kind)));
    const made = isNeeded ? await prepareParent(place, parent, holder) : null;
    if (made !== null) parents.push(made);
  }
  const chosen = choose(parents);
  const [memory, cpu, pids] = [chosen.memory, chosen.cpu, chosen.pids];
  const swap = memory && (await canAccess(join(memory.base, swapFile[memory.version])));
  const bases = [...new Set(Object.values(chosen).map(({ base }) => base))];
  const directories = (name: string) => bases.map((base) => join(base, name));
  return {
    mechanisms: mechanismsOf(parents),
    sweep: async (known) => {
      for (const base of bases) await sweep(base, known);
    },
    hold: async (pid) => {
      for (const place of places) {
        if (bases.includes(join(place.base, parent))) await prepareParent(place, parent, pid);
      }
    },
    removeAbandoned: async () => {
      for (const base of bases) await removeAbandoned(base);
    },
    leave: async () => {
      for (const base of bases) {
        await removeBase(base);
        // One that nothing has held.
        await rmdir(base).catch(() => {});
      }
    },
    directories,
    plan: (name, limits) => {
      const bytes = String(limits.memoryMb * 1024 * 1024);
      const quota = Math.round(limits.cpu * cpuPeriodUs);
      const set = (parent: Place | undefined, values: readonly (readonly [string, string | number])[]) =>
        parent ? values.map(([file, value]) => ({ file: join(parent.base, name, file), value: String(value) })) : [];
      return {
        directories: directories(name),
        sets: [
          ...set(memory, memory?.version === 2 ? [["memory.max", bytes]] : [["memory.limit_in_bytes", bytes]]),
          ...(swap ? set(memory, memory.version === 2 ? [[swapFile[2], 0]] : [[swapFile[1], bytes]]) : []),
          ...set(
            cpu,
            cpu?.version === 2
              ? [["cpu.max", `${quota} ${cpuPeriodUs}`]]
              : [
                  ["cpu.cfs_period_us", cpuPeriodUs],
                  ["cpu.cfs_quota_us", quota],
                ],
          ),
          ...set(pids, [["pids.max", limits.processes + reservedProcesses]]),
        ],
      };
    },
  };
}

const swapFile = { 1: "memory.memsw.limit_in_bytes", 2: "memory.swap.max" } as const;
const cpuPeriodUs = 100_000;
/** For bubblewrap, pid 1 and its handlers. */
const reservedProcesses = 64;

async function prepareParent(place: Place, name: string, holder?: number): Promise<Place | null> {
  const base = join(place.base, name);
  try {
    if (place.leave) await emptyInto(place.base, join(place.base, "slipway-keeper"));
    await (holder === undefined ? mkdir(base, { recursive: true }) : holdBase(base, holder));
  } catch {
    return null;
  }
  if (place.version === 1) return { ...place, base };
  const kinds: LimitKind[] = ["freeze"];
  for (const kind of place.kinds) {
    if (kind !== "freeze" && (await enableController(place.base, kind)) && (await enableController(base, kind)))
      kinds.push(kind);
  }
  return { ...place, base, kinds };
}

/** Repeats: processes may fork meanwhile. */
async function emptyInto(directory: string, leaf: string): Promise<void> {
  await mkdir(leaf, { recursive: true });
  for (let round = 0; round < 5; round++) {
    const pids = await processesIn(directory);
    if (pids.length === 0) return;
    for (const pid of pids) await writeFile(join(leaf, "cgroup.procs"), pid).catch(whenEnded);
  }
}

function whenEnded(error: NodeJS.ErrnoException): void {
  if (error.code !== "ESRCH") throw error;
}

async function sweep(base: string, known: ReadonlySet<string>): Promise<void> {
  const entries = await readdir(base, { withFileTypes: true });
  const strays = entries.filter((entry) => entry.isDirectory()).map(({ name }) => join(base, name));
  for (const directory of strays) {
    // Fails for a group with processes.
    if (!known.has(directory)) await rmdir(directory).catch(() => {});
  }
}

async function enableController(directory: string, controller: string): Promise<boolean> {
  return writeFile(join(directory, "cgroup.subtree_control"), `+${controller}`).then(
    () => true,
    () => false,
  );
}

/** The first place that has a kind. v2 comes first, so that a hybrid host freezes and kills by v2. */
function choose(places: readonly Place[]): Partial<Record<LimitKind, Place>> {
  const entries = limitKinds.map((kind) => [kind, places.find(({ kinds }) => kinds.includes(kind))] as const);
  return Object.fromEntries(entries.filter(([, place]) => place !== undefined));
}

function mechanismsOf(places: readonly Place[]): Record<LimitKind, Mechanism> {
  const chosen = choose(places);
  const mechanism = (kind: LimitKind): Mechanism =>
    chosen[kind] === undefined ? "none" : `cgroup v${chosen[kind].version}`;
  return { memory: mechanism("memory"), cpu: mechanism("cpu"), pids: mechanism("pids"), freeze: mechanism("freeze") };
}

async function readText(path: string): Promise<string | null> {
  return readFile(path, "utf8").catch(() => null);
}
