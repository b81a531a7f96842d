import { type FileInfo, hasCode, SlipwayError } from "@slipway/contract";
import { type CallOptions, type RestrictedSandbox, run } from "@slipway/sandbox";
import { type FileEntry, maxEntries, pathMistake } from "./manifest.ts";

export type SandboxTree = Pick<RestrictedSandbox, "files" | "exec">;

/** What lies below a directory of a sandbox, parents first. Its files have no hash yet. */
export type ListedEntry =
  | { readonly type: "file"; readonly path: string; readonly mode: number; readonly size: number }
  | { readonly type: "directory"; readonly path: string; readonly mode: number }
  | { readonly type: "symlink"; readonly path: string; readonly target: string };

export interface ListedTree {
  readonly entries: readonly ListedEntry[];
  /** Pipes, sockets and devices have no content to keep. */
  readonly leftOut: readonly string[];
}

export async function listTree(sandbox: SandboxTree, directory: string, options: CallOptions): Promise<ListedTree> {
  const root = await sandbox.files.stat(directory, { ...options, followSymlink: true });
  if (root.type !== "directory") throw new SlipwayError("not_a_directory", `${directory} is not a directory.`);
  const base = root.path.endsWith("/") ? root.path : `${root.path}/`;
  const entries: ListedEntry[] = [];
  const leftOut: string[] = [];
  for await (const info of sandbox.files.list(directory, { ...options, glob: "**" })) {
    if (!info.path.startsWith(base)) throw new SlipwayError("path_outside", `${info.path} is not below ${directory}.`);
    const path = info.path.slice(base.length);
    if (path === "") continue;
    const mistake = pathMistake(path);
    if (mistake !== undefined) {
      throw new SlipwayError("file_not_storable", `${JSON.stringify(path)} cannot be stored: ${mistake}.`);
    }
    const entry = entryOf(info, path);
    if (entry === undefined) leftOut.push(path);
    else entries.push(entry);
    if (entries.length + leftOut.length > maxEntries) {
      throw new SlipwayError("too_large", `${directory} holds more than ${maxEntries} entries.`);
    }
  }
  entries.sort((a, b) => (a.path < b.path ? -1 : 1));
  return { entries, leftOut };
}

function entryOf({ type, mode, size, symlinkTarget }: FileInfo, path: string): ListedEntry | undefined {
  if (type === "file") return { type, path, mode: mode & 0o7777, size };
  if (type === "directory") return { type, path, mode: mode & 0o7777 };
  return type === "symlink" ? { type, path, target: symlinkTarget ?? "" } : undefined;
}

/** Keeps the list that one exec is given, and what it answers, well below what an exec's log keeps. */
const hashesPerExec = 20_000;
const hashTimeoutMs = 3_600_000;

/**
 * Of the files that have a known file's size, those that have its content too, by the sandbox's own word: one exec hashes
 * them all, and nothing travels. The sandbox can lie about its own files alone, and a lie only leaves its own change out.
 * Without sha256sum inside, no file counts as unchanged.
 */
export async function findUnchanged(
  sandbox: SandboxTree,
  directory: string,
  listed: readonly ListedEntry[],
  known: ReadonlyMap<string, FileEntry>,
  { signal }: CallOptions,
): Promise<ReadonlyMap<string, FileEntry>> {
  const unchanged = new Map<string, FileEntry>();
  const candidates = listed.filter((entry) => entry.type === "file" && known.get(entry.path)?.size === entry.size);
  for (let at = 0; at < candidates.length; at += hashesPerExec) {
    const paths = candidates.slice(at, at + hashesPerExec).map(({ path }) => path);
    for (const [path, sha256] of await hashInside(sandbox, directory, paths, signal)) {
      const file = known.get(path);
      if (file?.sha256 === sha256) unchanged.set(path, file);
    }
  }
  return unchanged;
}

async function hashInside(
  sandbox: SandboxTree,
  directory: string,
  paths: readonly string[],
  signal: AbortSignal | undefined,
): Promise<[string, string][]> {
  const program = ["xargs", "-0", "-r", "sha256sum", "-z", "-b", "--"];
  try {
    const { stdout } = await run(sandbox, program, {
      cwd: directory,
      // Without a name, sha256sum would read its input.
      input: paths.map((path) => `${path}\0`).join(""),
      maxBytes: 60 * 1024 * 1024,
      timeoutMs: hashTimeoutMs,
      signal,
    });
    // Names that changed meanwhile have no line; the others' lines are right.
    return stdout.split("\0").flatMap((line): [string, string][] => {
      const [, sha256, path] = /^([0-9a-f]{64}) [ *](.+)$/s.exec(line) ?? [];
      return sha256 !== undefined && path !== undefined ? [[path, sha256]] : [];
    });
  } catch (error) {
    if (hasCode(error, "exec_not_started")) return [];
    throw error;
  }
}
