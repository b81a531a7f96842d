import { copyFile, lstat, realpath, stat, utimes } from "node:fs/promises";
import { dirname, join } from "node:path";
import { SlipwayError } from "@slipway/contract";
import { createGit, type Git, GitFailed, type GitSettings } from "./git.ts";
import { fieldsOf, line, split } from "./objects.ts";
import { quoted } from "./quarantine/quarantine.ts";
import { type Finding, toText } from "./quarantine/refusal.ts";
import { checkTree, type TreeLimits } from "./tree.ts";

/** The commit that main started from. */
export interface Origin {
  /** Null: the files were in no commit. */
  readonly commit: string | null;
  readonly branch: string | null;
  /** The commit object as base64, so that results can be merged at its origin. Left out: unknown or too long. */
  readonly object?: string | undefined;
  /** The user's files that are not in it: the first of them, and their count. */
  readonly untracked: { readonly paths: readonly string[]; readonly count: number };
}

export interface ImportOptions {
  readonly directory: string;
  readonly environment: GitSettings["environment"];
  readonly limits: TreeLimits;
  /** Uncommitted changes are refused or left out. */
  readonly uncommitted: "refuse" | "leave-out";
  /** For temporary files. */
  readonly scratch: string;
  readonly signal?: AbortSignal | undefined;
}

export interface Imported {
  readonly tree: string;
  readonly origin: Origin;
}

const mostPaths = 20;
const importMs = 600_000;

/**
 * Writes a user's directory as a tree into the build's repository: the files of HEAD if it is a repository with a
 * commit, else all files that are not ignored. Does not copy the history, so a shallow clone works too. Only reads the
 * directory: its hooks, filters and settings have no effect, and its index is read from a copy.
 */
export async function importDirectory(git: Git, options: ImportOptions): Promise<Imported> {
  const directory = await existing(options.directory);
  try {
    const repository = await findRepository(directory, options);
    if (repository?.commit === undefined) return await importFiles(git, directory, repository, options);
    return await importCommit(git, directory, { ...repository, commit: repository.commit }, options);
  } catch (error) {
    if (!(error instanceof GitFailed)) throw error;
    throw new SlipwayError("repository_refused", `${directory} cannot be imported: ${error.message}`, {
      cause: error,
    });
  }
}

async function existing(directory: string): Promise<string> {
  try {
    const path = await realpath(directory);
    if ((await stat(path)).isDirectory()) return path;
  } catch (error) {
    throw new SlipwayError("invalid_request", `${directory} cannot be read: ${(error as Error).message}`);
  }
  throw new SlipwayError("invalid_request", `${directory} is not a directory`);
}

interface Found {
  readonly bare: boolean;
  readonly objects: string;
  readonly index: string;
  readonly exclude: string;
  readonly branch: string | null;
  /** Undefined: the repository has no commit. */
  readonly commit: string | undefined;
}

async function findRepository(directory: string, { environment, signal }: ImportOptions): Promise<Found | undefined> {
  const bare = !(await exists(join(directory, ".git")));
  if (bare && !(await looksBare(directory))) {
    const above = await repositoryAbove(directory);
    if (above === undefined) return undefined;
    throw refused(`${directory} is inside the repository ${above}: name that one, or a directory outside it`);
  }
  const git = createGit({ directory: bare ? directory : join(directory, ".git"), environment });
  const ask = async (...args: string[]) => line(await git.run(["rev-parse", ...args], { signal, expected: [0, 1] }));
  if ((await ask("--show-object-format")) !== "sha1") throw refused(`${directory} does not use SHA-1 for its objects`);
  const path = (name: string) => ask("--path-format=absolute", "--git-path", name);
  const head = await ask("--verify", "--quiet", "HEAD");
  const branch = line(await git.run(["symbolic-ref", "--quiet", "--short", "HEAD"], { signal, expected: [0, 1] }));
  return {
    bare,
    objects: await path("objects"),
    index: await path("index"),
    exclude: await path("info/exclude"),
    branch: branch || null,
    commit: head || undefined,
  };
}

async function looksBare(directory: string): Promise<boolean> {
  const parts = await Promise.all(["HEAD", "objects", "refs"].map((name) => exists(join(directory, name))));
  return parts.every(Boolean);
}

async function repositoryAbove(directory: string): Promise<string | undefined> {
  for (let below = directory, above = dirname(below); above !== below; below = above, above = dirname(above)) {
    if (await exists(join(above, ".git"))) return above;
  }
  return undefined;
}

async function exists(path: string): Promise<boolean> {
  return await lstat(path).then(
    () => true,
    () => false,
  );
}

async function importCommit(
  git: Git,
  directory: string,
  found: Found & { readonly commit: string },
  options: ImportOptions,
): Promise<Imported> {
  const { signal, limits } = options;
  const reader = git.with({ GIT_ALTERNATE_OBJECT_DIRECTORIES: quoted(found.objects) });
  const tree = line(
    await reader.run(["rev-parse", "--verify", "--end-of-options", `${found.commit}^{tree}`], { signal }),
  );
  const untracked = found.bare ? nothing : await lookAtFiles(reader, directory, found, options);
  refuseFindings(directory, await checkTree(reader, tree, limits, { signal }));
  const pack = reader.stream(["pack-objects", "--revs", "--stdout", "-q"], {
    input: `${tree}\n`,
    timeMs: importMs,
    outputBytes: Number.POSITIVE_INFINITY,
    signal,
  });
  await git.run(["index-pack", "--stdin", "--strict"], { input: pack, timeMs: importMs, signal });
  const { stdout: bytes } = await reader.run(["cat-file", "commit", found.commit], { signal });
  const object = bytes.length > mostObjectBytes ? undefined : bytes.toString("base64");
  return { tree, origin: { commit: found.commit, branch: found.branch, object, untracked } };
}

const mostObjectBytes = 64 * 1024;

const nothing: Origin["untracked"] = { paths: [], count: 0 };

/** Lists untracked files. Refuses uncommitted changes of tracked ones unless they are to be left out. */
async function lookAtFiles(
  reader: Git,
  directory: string,
  found: Found & { readonly commit: string },
  options: ImportOptions,
) {
  const { scratch, uncommitted, signal } = options;
  const index = join(scratch, "index");
  if (await exists(found.index)) {
    await copyFile(found.index, index);
    // Git compares the index's own time with those of files to find changes.
    const { atime, mtime } = await stat(found.index);
    await utimes(index, atime, mtime);
  }
  const files = reader.with({ GIT_WORK_TREE: directory, GIT_INDEX_FILE: index });
  await files.run(["update-index", "-q", "--refresh"], { expected: [0, 1], timeMs: importMs, signal });
  const names = ["--name-only", "-z", "--no-ext-diff", "--ignore-submodules=all"];
  const staged = await files.run(["diff-index", "--cached", ...names, found.commit], { signal });
  const edited = await files.run(["diff-files", ...names], { timeMs: importMs, signal });
  const changed = [...new Set([...fieldsOf(staged.stdout), ...fieldsOf(edited.stdout)])];
  if (changed.length > 0 && uncommitted === "refuse") {
    const which = `${changed.slice(0, mostPaths).join(", ")}${changed.length > mostPaths ? ", ..." : ""}`;
    throw refused(`${directory} has ${changed.length} uncommitted changes (${which}): commit or stash them`);
  }
  const excluded = (await exists(found.exclude)) ? [`--exclude-from=${found.exclude}`] : [];
  const listing = [
    "ls-files",
    "--others",
    "--exclude-standard",
    ...excluded,
    "--directory",
    "--no-empty-directory",
    "-z",
  ];
  const others = fieldsOf((await files.run(listing, { timeMs: importMs, signal })).stdout);
  return { paths: others.slice(0, mostPaths), count: others.length };
}

async function importFiles(
  git: Git,
  directory: string,
  found: Found | undefined,
  { scratch, limits, signal }: ImportOptions,
): Promise<Imported> {
  const origin = { commit: null, branch: found?.branch ?? null, untracked: nothing };
  const index = join(scratch, "index");
  const files = git.with({ GIT_WORK_TREE: directory, GIT_INDEX_FILE: index });
  if (found?.bare !== true) {
    await checkFiles(files, directory, limits, signal);
    await files.run(["add", "--all", "--", "."], { timeMs: importMs, signal });
  }
  const tree = line(await files.run(["write-tree"], { signal }));
  refuseFindings(directory, await checkTree(git, tree, limits, { signal }));
  return { tree, origin };
}

/** Checks the limits before git copies anything. */
async function checkFiles(files: Git, directory: string, limits: TreeLimits, signal: AbortSignal | undefined) {
  let [count, bytes] = [0, 0];
  const listing = files.stream(["ls-files", "--others", "--exclude-standard", "-z"], { timeMs: importMs, signal });
  for await (const name of split(listing, 0)) {
    const path = name.toString("utf8");
    if (path.endsWith("/")) throw refused(`${directory} contains another repository: ${path}`);
    const { size } = await lstat(join(directory, path));
    bytes += size;
    if (size > limits.fileBytes)
      throw refused(`${directory}: ${path} has ${size} bytes, more than ${limits.fileBytes}`);
    if (++count > limits.entries)
      throw refused(`${directory} has more than ${limits.entries} files that are not ignored`);
    if (bytes > limits.totalBytes)
      throw refused(`${directory} has more than ${limits.totalBytes} bytes that are not ignored`);
  }
}

function refuseFindings(directory: string, findings: readonly Finding[]): void {
  if (findings.length === 0) return;
  const first = findings.slice(0, mostPaths).map(toText).join("; ");
  throw refused(`${directory} cannot be imported: ${first}${findings.length > mostPaths ? "; ..." : ""}`);
}

function refused(message: string): SlipwayError {
  return new SlipwayError("repository_refused", message);
}
