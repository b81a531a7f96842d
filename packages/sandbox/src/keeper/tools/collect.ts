import { randomUUID } from "node:crypto";
import { readdirSync, readFileSync, renameSync, rmSync, statSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { growingSuffix, markSuffix } from "./tools.ts";

const keptMs = 24 * 60 * 60_000;

/** Removes tool trees that no record names and that were not used for a day, and incomplete ones of that age. */
export async function collectTools(directory: string, recorded: ReadonlySet<string>, nowMs: number): Promise<number> {
  const names = readdirSync(directory);
  const old = new Set(names.filter((name) => ageMs(join(directory, name), nowMs) > keptMs));
  const marks = names.filter((name) => name.endsWith(markSuffix));
  const asked = marks.filter((mark) => !old.has(mark)).map((mark) => readFileSync(join(directory, mark), "utf8"));
  const used = new Set([...recorded, ...asked, ...marks]);
  for (const mark of marks) if (old.has(mark)) rmSync(join(directory, mark));
  const garbage = [...old].filter((name) => !used.has(name));
  for (const name of garbage) {
    // Renamed first: a crash must not leave part of a tree under its digest.
    const leaving = join(directory, `${randomUUID()}${growingSuffix}`);
    renameSync(join(directory, name), leaving);
    await rm(leaving, { recursive: true, force: true });
  }
  return garbage.length;
}

/** What a publisher has renamed meanwhile counts as new. */
function ageMs(path: string, nowMs: number): number {
  return nowMs - (statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? nowMs);
}
