import { createHash } from "node:crypto";
import { mkdir, readdir, readFile, rmdir, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { openCgroup } from "./cgroup-control.ts";

/** The name of a state directory's base groups, in which its sandboxes have theirs. */
export function baseName(stateDir: string): string {
  return `slipway-${createHash("sha256").update(stateDir).digest("hex").slice(0, 16)}`;
}

const baseNames = /^slipway-[0-9a-f]{16}$/;

/** Has a process for as long as the base has a keeper, so the kernel knows who has one. */
const keeperGroup = (base: string) => join(base, "keeper");

/** Makes the base, and keeps it from others' `removeAbandoned` until the process ends. */
export async function holdBase(base: string, pid: number): Promise<void> {
  for (let round = 1; ; round++) {
    try {
      await mkdir(keeperGroup(base), { recursive: true });
      // Never creates the file.
      return await writeFile(processesOf(keeperGroup(base)), String(pid), { flag: "r+" });
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      // The process has ended.
      if (code === "ESRCH") return;
      // Another keeper has just removed an abandoned base.
      if ((code !== "ENOENT" && code !== "ENODEV") || round === mostRounds) throw error;
    }
  }
}

const mostRounds = 100;

/** Removes the bases beside this one that have no keeper and no processes. */
export async function removeAbandoned(own: string): Promise<void> {
  const place = dirname(own);
  for (const name of await readdir(place))
    if (baseNames.test(name) && name !== basename(own)) await removeBase(join(place, name));
}

/**
 * Removes the base if it had a keeper and has none. Leaves groups that have processes, or that a later keeper reads
 * what ended a sandbox from. That cannot harm a keeper which starts meanwhile: its groups have other names than those
 * listed before.
 */
export async function removeBase(base: string): Promise<void> {
  const groups = (await groupsIn(base)).filter((group) => group !== keeperGroup(base));
  if ((await readFile(processesOf(keeperGroup(base)), "utf8").catch(() => null)) !== "") return;
  for (const group of groups) if ((await (await openCgroup([group])).oomKills()) === 0) await removeGroup(group);
  if ((await groupsIn(base)).length > 1) return;
  await removeGroup(keeperGroup(base));
  await removeGroup(base);
}

async function groupsIn(base: string): Promise<string[]> {
  const entries = await readdir(base, { withFileTypes: true }).catch(() => []);
  return entries.filter((entry) => entry.isDirectory()).map(({ name }) => join(base, name));
}

/** Fails for a group with processes or groups, and for another user's. */
async function removeGroup(directory: string): Promise<void> {
  await rmdir(directory).catch(() => {});
}

const processesOf = (group: string) => join(group, "cgroup.procs");
