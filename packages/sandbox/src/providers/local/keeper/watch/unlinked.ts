import { type Dir, opendirSync, readdirSync, readFileSync, type Stats, statSync } from "node:fs";
import { setImmediate } from "node:timers/promises";
import { mapLines } from "../../launch/layer-tool.ts";

/** The least that a file counts as, as in the measuring of trees: a disk runs out of inodes, too. */
const minBlocks = 8;
const blockBytes = 512;
/** Untrusted processes choose how much there is to look at. The order is random, so that another look sees the rest. */
const mostDescriptors = 30_000;
const mostMapBytes = 8 * 1024 * 1024;
/** How many to look at before yielding to other work. */
const atOnce = 256;

/**
 * Bytes on disk of the device's deleted files that the processes have open or mapped. Each thread may have its own
 * descriptors. Only root sees the targets of mappings, and the descriptors of untraceable processes. Reads nothing but
 * /proc.
 */
export async function unlinkedBytes(pids: readonly number[], device: number): Promise<number> {
  const blocks = new Map<number, number>();
  const note = (stat: Stats | null) => {
    if (stat?.dev === device && stat.nlink === 0) blocks.set(stat.ino, Math.max(stat.blocks, minBlocks));
  };
  let looks = 0;
  for (const descriptor of descriptorsOf(pids)) {
    note(statOf(descriptor));
    if (++looks === mostDescriptors) break;
    if (looks % atOnce === 0) await setImmediate();
  }
  const budget = { bytes: mostMapBytes };
  for (const pid of shuffled(pids)) {
    for await (const { thread, line } of mapLines(pid, budget)) {
      if (line.endsWith(" (deleted)")) note(statOf(`/proc/${thread}/map_files/${line.slice(0, line.indexOf(" "))}`));
    }
  }
  return [...blocks.values()].reduce((sum, each) => sum + each * blockBytes, 0);
}

/** Bytes that the processes, and children they have waited for, wrote to disk. */
export function writtenBytes(pids: readonly number[]): number {
  return pids.reduce((sum, pid) => {
    try {
      return sum + Number(/^write_bytes: (\d+)$/m.exec(readFileSync(`/proc/${pid}/io`, "latin1"))?.[1] ?? 0);
    } catch {
      return sum;
    }
  }, 0);
}

/** The device of a process's root. */
export function rootDevice(pid: number): number | null {
  return statOf(`/proc/${pid}/root`)?.dev ?? null;
}

/** Lazily: there may be millions. */
function* descriptorsOf(pids: readonly number[]): Iterable<string> {
  for (const directory of shuffled(pids.flatMap(descriptorTables))) {
    let opened: Dir | undefined;
    try {
      opened = opendirSync(directory, { bufferSize: atOnce });
      for (let entry = opened.readSync(); entry !== null; entry = opened.readSync()) yield `${directory}/${entry.name}`;
    } catch {
      // The thread has ended.
    } finally {
      opened?.closeSync();
    }
  }
}

function descriptorTables(pid: number): string[] {
  try {
    return readdirSync(`/proc/${pid}/task`).map((thread) => `/proc/${pid}/task/${thread}/fd`);
  } catch {
    return [];
  }
}

/** Null when it was closed meanwhile or is not visible. */
function statOf(path: string): Stats | null {
  try {
    return statSync(path);
  } catch {
    return null;
  }
}

function shuffled<T>(list: readonly T[]): T[] {
  return list
    .map((entry) => ({ entry, at: Math.random() }))
    .sort((a, b) => a.at - b.at)
    .map(({ entry }) => entry);
}
