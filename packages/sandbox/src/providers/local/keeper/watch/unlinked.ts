import { type Dir, opendirSync, readdirSync, readFileSync, type Stats, statSync } from "node:fs";
import { setImmediate } from "node:timers/promises";
import { mapLines } from "../../launch/layer-tool.ts";

/** The least that a file takes, as the measuring of trees has it: a disk runs out of files, too. */
const minBlocks = 8;
const blockBytes = 512;
/** Processes choose how much there is to look at. What is left out of one look is in another: the order is drawn. */
const mostDescriptors = 30_000;
const mostMapBytes = 8 * 1024 * 1024;
/** Looked at in one go, before others have their turn. */
const atOnce = 256;

/**
 * Bytes on disk of the device's files that the processes have open or mapped and that no directory shows any more. Each thread may
 * have descriptors of its own. Where mappings lead, and what is open in a process that can not be traced, is only root's to see.
 * Nothing but what /proc says of them is looked at.
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

/** What the processes, and those whose end they have waited for, have written to disks. */
export function writtenBytes(pids: readonly number[]): number {
  return pids.reduce((sum, pid) => {
    try {
      return sum + Number(/^write_bytes: (\d+)$/m.exec(readFileSync(`/proc/${pid}/io`, "latin1"))?.[1] ?? 0);
    } catch {
      return sum;
    }
  }, 0);
}

/** The file system that a process has as its root. */
export function rootDevice(pid: number): number | null {
  return statOf(`/proc/${pid}/root`)?.dev ?? null;
}

/** Read as they are asked for: there may be millions. */
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

/** Null: it has been closed meanwhile, or is not ours to see. */
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
