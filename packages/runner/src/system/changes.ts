import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type AgentEvent, SlipwayError } from "@slipway/contract";
import { type Git, gitIn, removeLocks, unlessExit } from "./git.ts";

export type FileChange = Extract<AgentEvent, { type: "file_change" }>;

/** Detects changes in the work tree, whoever makes them, with a git repository beside it. */
export interface Changes {
  /**
   * Reports what has changed since the last look. Looks do not overlap: calls during one share the next, and the first
   * caller gets the report. A look that takes too long reports nothing; the next one catches up.
   */
  look(report: (changes: readonly FileChange[]) => Promise<void>): Promise<void>;
}

export interface ChangesOptions {
  /** The repository's directory, outside the work tree. */
  readonly directory: string;
  readonly workdir: string;
  readonly environment: Readonly<Record<string, string>>;
  readonly lookMs?: number;
  /** The limit of one report. */
  readonly maxChanges?: number;
}

/** The last reported tree, kept across restarts. */
const seen = "refs/slipway/seen";
const locks = ["config", "HEAD", "index", seen];

export async function openChanges(options: ChangesOptions): Promise<Changes> {
  const { lookMs = 30_000, maxChanges = 1_000 } = options;
  // The first look at a large project takes long.
  await createRepository(gitIn({ ...options, timeoutMs: lookMs * 10 }), options.directory);
  const git = gitIn({ ...options, timeoutMs: lookMs });
  const lookOnce = async (report: (changes: readonly FileChange[]) => Promise<void>) => {
    const tree = await writeTree(git, options.directory);
    await report(readChanges(await listChanges(git, tree)).slice(0, maxChanges));
    await git("update-ref", seen, tree);
  };
  let current: Promise<void> = Promise.resolve();
  let next: Promise<void> | undefined;
  return {
    look(report) {
      next ??= current.then(async () => {
        current = next ?? current;
        next = undefined;
        await lookOnce(report).catch(unlessMissing);
      });
      return next;
    },
  };
}

async function createRepository(git: Git, directory: string): Promise<void> {
  await mkdir(join(directory, "info"), { recursive: true });
  await removeLocks(directory, locks);
  await git("init", "--quiet");
  await writeFile(join(directory, "info", "exclude"), "node_modules/\n");
  const known = await git("rev-parse", "--verify", "--quiet", seen).catch(() => "");
  if (known === "") await git("update-ref", seen, await writeTree(git, directory));
}

async function writeTree(git: Git, directory: string): Promise<string> {
  await removeLocks(directory, locks);
  // Git leaves out unreadable files and nested repositories without a commit, and then exits with an error.
  await git("add", "--all", "--ignore-errors", ".").catch(unlessExit);
  return (await git("write-tree")).trim();
}

async function listChanges(git: Git, tree: string): Promise<string> {
  try {
    return await git("diff-tree", "-r", "-z", "--name-status", "--no-renames", seen, tree);
  } catch (error) {
    if (codeOf(error) !== "ERR_CHILD_PROCESS_STDIO_MAXBUFFER") throw error;
    // More than anyone reads.
    return "";
  }
}

/** A failing git does not end the run. A missing git does. */
function unlessMissing(error: unknown): void {
  if (codeOf(error) === "ENOENT") throw new SlipwayError("component_missing", "There is no git in the sandbox.");
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && "code" in error ? error.code : undefined;
}

const actions = { A: "added", M: "modified", T: "modified", D: "deleted" } as const;

/** Alternating status and path, each followed by a NUL. */
function readChanges(listed: string): FileChange[] {
  const fields = listed.split("\0");
  const changes: FileChange[] = [];
  for (let index = 0; index + 1 < fields.length; index += 2) {
    const action = actions[fields[index] as keyof typeof actions];
    const path = fields[index + 1];
    if (action !== undefined && path !== undefined && path.length <= 4_096)
      changes.push({ type: "file_change", path, action });
  }
  return changes;
}
