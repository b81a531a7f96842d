import { spawn } from "node:child_process";
import { lstat, realpath } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { SlipwayError } from "@slipway/contract";
import { fileOrLink, type WalkOptions, walkTree } from "./host-tree.ts";
import type { RestrictedSandbox, TreeEntry } from "./provider.ts";

/** For the git program. */
type Environment = Readonly<Record<string, string | undefined>>;

/** Copies a directory into a sandbox's workdir. */
export async function putDirectory(
  sandbox: RestrictedSandbox,
  target: { readonly directory: string; readonly workdir: string; readonly environment: Environment },
  options: WalkOptions,
): Promise<{ entries: number; bytes: number }> {
  const { directory, workdir, environment } = target;
  const entries = directoryEntries(directory, environment, options);
  return sandbox.files.upload(workdir, entries, { signal: options.signal });
}

/**
 * The entries of a directory that an agent gets. Of a git repository, only what git tracks or would add: not its
 * `.git`, whose settings may hold credentials, nor what it ignores.
 */
export async function* directoryEntries(
  directory: string,
  environment: Environment,
  options: WalkOptions,
): AsyncGenerator<TreeEntry> {
  const listed = await listedByGit(directory, environment, options.signal);
  yield* listed ? entriesOf(directory, listed, options) : withoutGit(walkTree(directory, options));
}

/** The index is untrusted, and git's list is held in memory. */
const maxListBytes = 64 * 1024 * 1024;

/** Undefined outside a repository. Paths are relative to the directory, which may be below the repository's root. */
async function listedByGit(
  directory: string,
  environment: Environment,
  signal: AbortSignal,
): Promise<string[] | undefined> {
  const listing = ["ls-files", "-z", "--cached", "--others", "--exclude-standard", "--deduplicate"];
  const argv = ["-C", directory, "-c", "core.fsmonitor=false", ...listing];
  const env = gitEnvironment(environment);
  const child = spawn("git", argv, { env, stdio: ["ignore", "pipe", "pipe"], signal });
  const code = new Promise<number | null>((resolve, reject) => child.once("error", reject).once("close", resolve));
  const [paths, complaint, exitCode] = await Promise.all([readList(child.stdout), text(child.stderr), code]);
  if (exitCode === 0) return paths.split("\0").filter((path) => path !== "");
  if (complaint.includes("not a git repository (or any")) return undefined;
  // Without the list, the copy would include ignored files, such as secrets.
  const words = complaint.trim().slice(0, 2000);
  throw new SlipwayError("invalid_request", `git cannot list the files of ${directory}: ${words}`);
}

/** Leaving the loop early closes the pipe, which ends git. */
async function readList(output: Readable): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of output) {
    bytes += chunk.length;
    if (bytes > maxListBytes) {
      throw new SlipwayError("too_large", `git lists more than ${maxListBytes} bytes of names.`);
    }
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}

/** The repository's settings are untrusted: they must start no program, not even to fetch missing objects. */
function gitEnvironment(environment: Environment): NodeJS.ProcessEnv {
  const own = Object.entries(environment).filter(([name]) => !name.startsWith("GIT_"));
  return { ...Object.fromEntries(own), LC_ALL: "C", GIT_ALLOW_PROTOCOL: "", GIT_NO_LAZY_FETCH: "1" };
}

async function* entriesOf(root: string, paths: readonly string[], options: WalkOptions): AsyncGenerator<TreeEntry> {
  const isInside = createInsideCheck(await realpath(root));
  for (const path of paths) {
    options.signal.throwIfAborted();
    const stats = await lstat(join(root, path)).catch(undefinedWhenMissing);
    // Tracked, but deleted.
    if (stats === undefined) continue;
    if (!(await isInside(path))) options.onLeftOut(path, "it lies behind a link");
    else {
      const entry = await fileOrLink(root, path, stats, options);
      if (entry !== undefined) yield entry;
      else options.onLeftOut(path, stats.isDirectory() ? "a repository of its own" : "neither a file nor a link");
    }
  }
}

/** A forged index can name files behind links, or above the directory. */
function createInsideCheck(realRoot: string): (path: string) => Promise<boolean> {
  const known = new Map<string, boolean>();
  return async (path) => {
    const parent = dirname(path);
    const answer = known.get(parent);
    if (answer !== undefined) return answer;
    const isInside =
      !parent.split("/").includes("..") && (await realpath(join(realRoot, parent))) === join(realRoot, parent);
    known.set(parent, isInside);
    return isInside;
  };
}

function undefinedWhenMissing(error: NodeJS.ErrnoException): undefined {
  if (error.code === "ENOENT" || error.code === "ENOTDIR") return undefined;
  throw error;
}

async function* withoutGit(entries: AsyncIterable<TreeEntry>): AsyncGenerator<TreeEntry> {
  for await (const entry of entries) if (!/(^|\/)(\.git|node_modules)(\/|$)/.test(entry.path)) yield entry;
}
