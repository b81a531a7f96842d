import { spawn } from "node:child_process";
import { lstat, readlink } from "node:fs/promises";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import type { Sandbox, TreeEntry } from "@slipway/sandbox";
import { readLocal, type WalkOptions, walkTree } from "../cp/walk.ts";

/**
 * Copies a directory into a sandbox's workdir. Of a git repository only what git tracks or would add: neither its `.git`,
 * whose settings may hold credentials, nor what it ignores.
 */
export async function putDirectory(
  sandbox: Sandbox,
  target: { readonly directory: string; readonly workdir: string },
  options: WalkOptions,
): Promise<{ entries: number; bytes: number }> {
  const { directory, workdir } = target;
  const listed = await listedByGit(directory);
  const entries = listed ? entriesOf(directory, listed, options) : withoutGit(walkTree(directory, options));
  return sandbox.files.upload(workdir, entries, { signal: options.signal });
}

/** Undefined where there is no repository. Paths are relative to the directory, which may be below the repository's root. */
async function listedByGit(directory: string): Promise<string[] | undefined> {
  const argv = ["-C", directory, "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--deduplicate"];
  const child = spawn("git", argv, { stdio: ["ignore", "pipe", "ignore"] });
  const code = new Promise<number | null>((resolve, reject) => child.once("error", reject).once("close", resolve));
  const [listing, exitCode] = await Promise.all([text(child.stdout), code]);
  return exitCode === 0 ? listing.split("\0").filter((path) => path !== "") : undefined;
}

async function* entriesOf(root: string, paths: readonly string[], options: WalkOptions): AsyncGenerator<TreeEntry> {
  for (const path of paths) {
    options.signal.throwIfAborted();
    const stats = await lstat(join(root, path)).catch((error: NodeJS.ErrnoException) => {
      // Tracked, and deleted since.
      if (error.code === "ENOENT" || error.code === "ENOTDIR") return undefined;
      throw error;
    });
    if (stats?.isFile()) {
      yield { type: "file", path, mode: stats.mode & 0o777, content: readLocal(join(root, path), options) };
    } else if (stats?.isSymbolicLink()) {
      yield { type: "symlink", path, target: await readlink(join(root, path)) };
    } else if (stats) {
      options.onLeftOut(path, stats.isDirectory() ? "a repository of its own" : "neither a file nor a link");
    }
  }
}

async function* withoutGit(entries: AsyncIterable<TreeEntry>): AsyncGenerator<TreeEntry> {
  for await (const entry of entries) if (!/(^|\/)(\.git|node_modules)(\/|$)/.test(entry.path)) yield entry;
}
