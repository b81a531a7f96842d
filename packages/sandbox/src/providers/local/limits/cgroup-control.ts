import { readdir, readFile, rmdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { SlipwayError } from "@slipway/contract";

/** The control groups of one sandbox. The kernel holds all state, so a later process can open them too. */
export interface Cgroup {
  /** Resolves when every process is frozen. */
  freeze(): Promise<void>;
  thaw(): Promise<void>;
  /** Whether it is frozen or about to be. */
  isFreezing(): Promise<boolean>;
  /** How many processes the OOM killer has ended. */
  oomKills(): Promise<number>;
  /** Pids, as the host numbers them. */
  processes(): Promise<number[]>;
  /** Resolves when no process is left. */
  kill(): Promise<void>;
  remove(): Promise<void>;
}

/** `directories`: those of the plan that the sandbox started with. Without any, it cannot freeze or count. */
export async function openCgroup(directories: readonly string[]): Promise<Cgroup> {
  const files = new Map<string, string>();
  for (const directory of directories) {
    for (const name of await readdir(directory).catch(() => []))
      if (!files.has(name)) files.set(name, join(directory, name));
  }
  const read = async (name: string): Promise<string | null> => {
    const path = files.get(name);
    return path === undefined ? null : readFile(path, "utf8").catch(whenGone);
  };
  const processes = async () => ((await read("cgroup.procs")) ?? "").split("\n").filter(Boolean).map(Number);
  const freezer = freezerOf(files, read);

  return {
    processes,
    async freeze() {
      await freezer.set(true);
      await until("freeze", freezer.frozen);
    },
    thaw: () => freezer.set(false),
    isFreezing: freezer.freezing,
    async oomKills() {
      const events = (await read("memory.events")) ?? (await read("memory.oom_control")) ?? "";
      return Number(/^oom_kill (\d+)$/m.exec(events)?.[1] ?? 0);
    },
    async kill() {
      const killFile = files.get("cgroup.kill");
      if (killFile !== undefined) await writeFile(killFile, "1").catch(whenGone);
      await until("end", async () => {
        const pids = await processes();
        if (killFile === undefined) await killFrozen(freezer, pids);
        return pids.length === 0;
      });
    },
    async remove() {
      for (const directory of directories) await until("leave", () => removed(directory));
    },
  };
}

interface Freezer {
  set(frozen: boolean): Promise<void>;
  freezing(): Promise<boolean>;
  frozen(): Promise<boolean>;
}

function freezerOf(files: ReadonlyMap<string, string>, read: (name: string) => Promise<string | null>): Freezer {
  const v2 = files.get("cgroup.freeze");
  const v1 = files.get("freezer.state");
  return {
    async set(frozen) {
      if (v2 !== undefined) await writeFile(v2, frozen ? "1" : "0");
      else if (v1 !== undefined) await writeFile(v1, frozen ? "FROZEN" : "THAWED");
      else throw new SlipwayError("capability_missing", "This host has no control group that freezes.");
    },
    async freezing() {
      const asked = (await read(v2 === undefined ? "freezer.state" : "cgroup.freeze"))?.trim();
      return asked === "1" || asked === "FREEZING" || asked === "FROZEN";
    },
    async frozen() {
      return v2 !== undefined
        ? /^frozen 1$/m.test((await read("cgroup.events")) ?? "")
        : (await read("freezer.state"))?.trim() === "FROZEN";
    },
  };
}

/** Frozen processes cannot fork, and their pids cannot be reused. */
async function killFrozen(freezer: Freezer, pids: readonly number[]): Promise<void> {
  await freezer.set(true).catch(() => {});
  for (const pid of pids) {
    try {
      process.kill(pid, "SIGKILL");
    } catch {
      // It has ended.
    }
  }
  await freezer.set(false).catch(() => {});
}

async function removed(directory: string): Promise<boolean> {
  try {
    await rmdir(directory);
    return true;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT") return true;
    if (code === "EBUSY") return false;
    throw error;
  }
}

const patienceMs = 30_000;

async function until(what: string, done: () => Promise<boolean>): Promise<void> {
  const deadline = performance.now() + patienceMs;
  for (let waitMs = 0.5; !(await done()); waitMs = Math.min(waitMs * 2, 50)) {
    if (performance.now() > deadline)
      throw new SlipwayError("internal", `The sandbox's processes did not ${what} within ${patienceMs / 1000} s.`);
    await sleep(waitMs);
  }
}

function whenGone(error: NodeJS.ErrnoException): null {
  if (error.code === "ENOENT" || error.code === "ENODEV") return null;
  throw error;
}
