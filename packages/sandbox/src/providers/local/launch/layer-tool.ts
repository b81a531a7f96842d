import { open, readdir } from "node:fs/promises";
import { text } from "node:stream/consumers";
import { type ErrorCode, SlipwayError } from "@slipway/contract";
import type { Identity } from "./launch.ts";
import { doneLine, type LaunchService } from "./launch-service.ts";

/** Works on trees that untrusted code wrote, through `slipway-launch layer`, with the rights of the sandboxes' uid. */
export interface LayerTool {
  /** Copies a sandbox's upper into the new directory `to`. Nothing may change it meanwhile. */
  copy(request: CopyRequest): Promise<void>;
  /** Merges layers into the new directory `to` by hard links. What they delete from layers below stays deleted. */
  flatten(request: { readonly to: string; readonly lowestFirst: readonly string[] }): Promise<void>;
  /** Bytes on disk, each file once; stops counting past `mostBytes`. The tree may be in use. */
  measure(path: string, options?: { readonly mostBytes?: number }): Promise<number>;
  /** Removes the tree, if it exists. */
  remove(path: string): Promise<void>;
}

export interface CopyRequest {
  readonly from: string;
  readonly to: string;
  /** The file to describe the copy in, for the next copy to compare with. */
  readonly manifest: string;
  /** An earlier copy of the same upper, and its manifest: hard-links what has not changed. */
  readonly previous?: string;
  readonly previousManifest?: string;
  /** See `inodesMappedForWriting`. */
  readonly changing?: readonly number[];
}

export function createLayerTool(service: LaunchService, identity: Identity | null): LayerTool {
  const who = identity === null ? [] : ["--uid", String(identity.uid), "--gid", String(identity.gid)];
  const run = (...args: readonly string[]) => runTool(service, ["layer", ...who, ...args]);
  return {
    async copy({ from, to, manifest, previous, previousManifest, changing = [] }) {
      const earlier =
        previous === undefined || previousManifest === undefined
          ? []
          : ["--previous", previous, "--previous-manifest", previousManifest];
      const inodes = changing.flatMap((inode) => ["--changing", String(inode)]);
      await run("copy", "--from", from, "--to", to, "--manifest", manifest, ...earlier, ...inodes);
    },
    async flatten({ to, lowestFirst }) {
      await run("flatten", "--to", to, ...lowestFirst);
    },
    async measure(path, { mostBytes } = {}) {
      const most = mostBytes === undefined ? [] : ["--most", String(mostBytes)];
      return Number(await run("measure", path, ...most));
    },
    async remove(path) {
      await run("remove", path);
    },
  };
}

/**
 * Files that the processes map for shared writing: they may change without a new ctime, so the next copy must copy
 * them again. Call while the processes are frozen.
 */
export async function inodesMappedForWriting(pids: readonly number[]): Promise<number[]> {
  const inodes = new Set<number>();
  const budget = { bytes: mostMapBytes };
  for (const pid of pids) {
    for await (const { line } of mapLines(pid, budget)) {
      const inode = Number(/^\S+ .w.s \S+ \S+ (\d+)/.exec(line)?.[1] ?? 0);
      if (inode !== 0) inodes.add(inode);
    }
    if (inodes.size > mostInodes || budget.bytes < 0)
      throw new SlipwayError("too_large", "Too many mapped files to snapshot it live. Stop the sandbox first.");
  }
  return [...inodes];
}

/** Untrusted processes choose the number of maps and the length of their paths. */
const mostMapBytes = 64 * 1024 * 1024;
/** Each becomes an argument of the tool. */
const mostInodes = 10_000;

/** The lines of `maps`, as far as the budget goes, and the number by which /proc has them. */
export async function* mapLines(
  pid: number,
  budget: { bytes: number },
): AsyncIterable<{ readonly thread: string; readonly line: string }> {
  let hasRead = false;
  for await (const thread of threadsOf(pid)) {
    for await (const line of linesOf(`/proc/${thread}/maps`, budget)) {
      hasRead = true;
      yield { thread, line };
    }
    if (hasRead) return;
  }
}

/** The first one may have ended and tell nothing, while the others go on. */
async function* threadsOf(pid: number): AsyncIterable<string> {
  yield String(pid);
  yield* (await readdir(`/proc/${pid}/task`).catch(() => [])).slice(1);
}

async function* linesOf(path: string, budget: { bytes: number }): AsyncIterable<string> {
  const file = await open(path).catch(() => null);
  if (file === null) return;
  try {
    const block = Buffer.allocUnsafe(64 * 1024);
    let rest = "";
    while (budget.bytes >= 0) {
      // The process may have ended.
      const { bytesRead } = await file.read(block).catch(() => ({ bytesRead: 0 }));
      if (bytesRead === 0) return;
      budget.bytes -= bytesRead;
      const lines = (rest + block.toString("latin1", 0, bytesRead)).split("\n");
      rest = lines.pop() ?? "";
      yield* lines;
    }
  } finally {
    await file.close();
  }
}

/** Returns what it prints, without the line that says it is done. */
async function runTool(service: LaunchService, args: readonly string[]): Promise<string> {
  const { connection } = await service.run(args);
  try {
    const said = await text(connection);
    if (said.endsWith(doneLine)) return said.slice(0, -doneLine.length);
    const complaint = said.trim() || "slipway-launch ended without a message.";
    throw new SlipwayError(codeOf(complaint), complaint);
  } finally {
    connection.destroy();
  }
}

function codeOf(complaint: string): ErrorCode {
  if (/: (No space left on device|Disk quota exceeded)$/.test(complaint)) return "out_of_disk";
  return complaint.includes("nested deeper than") ? "too_large" : "internal";
}
