import { open, readdir } from "node:fs/promises";
import { text } from "node:stream/consumers";
import { type ErrorCode, SlipwayError } from "@slipway/contract";
import type { Identity } from "./launch.ts";
import { doneLine, type LaunchService } from "./launch-service.ts";

/** Work on trees that untrusted code wrote, done by `slipway-launch layer` with the rights of the sandboxes' uid. */
export interface LayerTool {
  /** Copies a sandbox's upper, which nothing changes meanwhile, into the new directory `to`. */
  copy(request: CopyRequest, options?: { readonly signal?: AbortSignal }): Promise<void>;
  /** Merges layers into the new directory `to` by hard links. What they delete from layers below stays deleted. */
  flatten(
    request: { readonly to: string; readonly lowestFirst: readonly string[] },
    options?: { readonly signal?: AbortSignal },
  ): Promise<void>;
  /** Bytes on disk, each file once; stops counting when past `mostBytes`. The tree may be in use. */
  measure(path: string, options?: { readonly mostBytes?: number; readonly signal?: AbortSignal }): Promise<number>;
  /** Removes the tree. Nothing there is fine. */
  remove(path: string, options?: { readonly signal?: AbortSignal }): Promise<void>;
}

export interface CopyRequest {
  readonly from: string;
  readonly to: string;
  /** Where to note what was copied, for the next copy to compare with. */
  readonly manifest: string;
  /** An earlier copy of the same upper and its manifest: what is unchanged since is linked. */
  readonly previous?: string;
  readonly previousManifest?: string;
  /** See `inodesMappedForWriting`. */
  readonly changing?: readonly number[];
}

export function createLayerTool({
  service,
  identity,
}: {
  readonly service: LaunchService;
  readonly identity: Identity | null;
}): LayerTool {
  const who = identity === null ? [] : ["--uid", String(identity.uid), "--gid", String(identity.gid)];
  const run = (args: readonly string[], signal?: AbortSignal) => runTool(service, ["layer", ...who, ...args], signal);
  return {
    async copy({ from, to, manifest, previous, previousManifest, changing = [] }, { signal } = {}) {
      const earlier =
        previous === undefined || previousManifest === undefined
          ? []
          : ["--previous", previous, "--previous-manifest", previousManifest];
      const inodes = changing.flatMap((inode) => ["--changing", String(inode)]);
      await run(["copy", "--from", from, "--to", to, "--manifest", manifest, ...earlier, ...inodes], signal);
    },
    async flatten({ to, lowestFirst }, { signal } = {}) {
      await run(["flatten", "--to", to, ...lowestFirst], signal);
    },
    async measure(path, { mostBytes, signal } = {}) {
      const most = mostBytes === undefined ? [] : ["--most", String(mostBytes)];
      return Number(await run(["measure", path, ...most], signal));
    },
    async remove(path, { signal } = {}) {
      await run(["remove", path], signal);
    },
  };
}

/**
 * Files that the processes map for shared writing. The kernel may not tell that they change, so a copy must not take
 * them for unchanged the next time. Ask while the processes stand still.
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
      throw new SlipwayError("too_large", "its processes map too many files for a copy while they run; stop it first");
  }
  return [...inodes];
}

/** Processes choose how many maps they have and how long their paths are: gigabytes, if they like. */
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
      // A process that has ended meanwhile maps nothing.
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

/** What it prints, without the line that says it is done. */
async function runTool(
  service: LaunchService,
  args: readonly string[],
  signal: AbortSignal | undefined,
): Promise<string> {
  const aborted = () => new SlipwayError("aborted", "the work on layers was given up", { cause: signal?.reason });
  if (signal?.aborted) throw aborted();
  const { connection, kill } = await service.run(args);
  signal?.addEventListener("abort", kill, { once: true });
  if (signal?.aborted) kill();
  try {
    const said = await text(connection);
    if (said.endsWith(doneLine)) return said.slice(0, -doneLine.length);
    if (signal?.aborted) throw aborted();
    const complaint = said.trim() || "slipway-launch ended without a word";
    throw new SlipwayError(codeOf(complaint), complaint);
  } finally {
    signal?.removeEventListener("abort", kill);
    connection.destroy();
  }
}

function codeOf(complaint: string): ErrorCode {
  if (/: (No space left on device|Disk quota exceeded)$/.test(complaint)) return "out_of_disk";
  return complaint.includes("nested deeper than") ? "too_large" : "internal";
}
