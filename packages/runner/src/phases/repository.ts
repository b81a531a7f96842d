import { mkdir, rename, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { TaskOrder } from "@slipway/contract";
import { claimEnd } from "../supervise/end.ts";
import { type Git, gitIn, unlessExit } from "../system/git.ts";
import { bothSides, mergeTree, unsolvedIn } from "./conflicts.ts";
import { author, findHead, link, mainRef, unlock } from "./link.ts";
import { TaskRunOver } from "./over.ts";

/**
 * The attempt's branch. Its repository lies beside the workspace, whose `.git` only points there: what an agent deletes
 * or moves is restored. The workspace's files are the work. Each commit takes all files that are not ignored.
 */
export interface Repository {
  /** Creates the workspace with the branch, and returns its first commit. */
  prepare(): Promise<string>;
  /** Commits the workspace and returns the branch's last commit. `merged` is a main that is now part of it. */
  commit(tip: string, message: string, merged?: string): Promise<string>;
  /** Returns the agents' current commit if it descends from the tip, otherwise the tip. */
  latest(tip: string): Promise<string>;
  /** Whether the workspace matches the last commit. */
  isClean(): Promise<boolean>;
  /** Resets the workspace to the commit. Ignored files stay. */
  restore(commit: string): Promise<void>;
  /** Takes a commit from a bundle. False if it is not in there. */
  fetch(bundle: string, commit: string): Promise<boolean>;
  /** Merges main into the branch and the workspace. On conflicts, the files contain both sides. */
  merge(tip: string, main: string): Promise<Merge>;
  /** Returns the files that still have conflict marks. */
  unsolved(paths: readonly string[]): Promise<string[]>;
  /** Lists the differences between two commits. */
  changes(from: string, to: string): Promise<readonly Change[]>;
  tree(commit: string): Promise<string>;
  /** Returns the ids of the commit's files with one of these names. */
  blobs(commit: string, names: ReadonlySet<string>): Promise<string>;
  /** Writes the commit's files into an empty directory. Needs room for a file beside it. */
  extract(commit: string, directory: string): Promise<void>;
  /** Writes a bundle of the branch with this tip, without what the host has. Agents may be at work. */
  bundle(path: string, tip: string, known: readonly string[]): Promise<void>;
}

export type Merge =
  | { readonly type: "merged"; readonly tip: string }
  | { readonly type: "conflicts"; readonly paths: readonly string[]; readonly text: string };

export interface Change {
  readonly path: string;
  readonly status: "added" | "changed" | "deleted";
}

export interface RepositoryOptions {
  readonly order: Pick<TaskOrder, "branch" | "base" | "bundle" | "from">;
  /** The run's own files. */
  readonly directory: string;
  readonly workdir: string;
  readonly environment: Readonly<Record<string, string>>;
}

/** Enough for a large project on a busy machine. */
const timeoutMs = 300_000;
const identity = {
  GIT_AUTHOR_NAME: author.name,
  GIT_AUTHOR_EMAIL: author.email,
  GIT_COMMITTER_NAME: author.name,
  GIT_COMMITTER_EMAIL: author.email,
};

export function openRepository(options: RepositoryOptions): Repository {
  const { order, workdir } = options;
  const directory = join(options.directory, "repository");
  const environment = { ...options.environment, ...identity };
  const git = gitIn({ directory, workdir, environment, timeoutMs });
  /** With its own index: the agent uses the other one. */
  const apart = (index: string, tree = workdir) =>
    gitIn({ directory, workdir: tree, environment: { ...environment, GIT_INDEX_FILE: index }, timeoutMs });
  const ownIndex = join(directory, "slipway-index");
  /** With its own refs: the agent uses the others. */
  const ownRefs = join(options.directory, "bundle-refs");
  const withOwnRefs = gitIn({
    directory: ownRefs,
    workdir,
    timeoutMs,
    environment: { ...environment, GIT_OBJECT_DIRECTORY: join(directory, "objects") },
  });
  const has = (commit: string) => succeeds(git("cat-file", "-e", `${commit}^{commit}`));
  const contains = (commit: string, other: string) => succeeds(git("merge-base", "--is-ancestor", other, commit));
  const treeOf = async (commit: string) => (await git("rev-parse", `${commit}^{tree}`)).trim();

  const resolve = async (name: string) =>
    (await git("rev-parse", "--verify", "--quiet", `${name}^{commit}`).catch(() => "")).trim();
  const branch = `refs/heads/${order.branch}`;

  /** Points HEAD at the branch and the branch at the tip. `--hard` resets the files, too. */
  const settle = async (tip: string, how: "--mixed" | "--hard" = "--mixed") => {
    await git("symbolic-ref", "HEAD", branch);
    await git("reset", "--quiet", how, tip);
  };
  const restore = async (commit: string) => {
    await link(workdir, directory, branch);
    await unlock(directory, branch);
    await settle(commit, "--hard");
    await git("clean", "-ffdq");
  };
  /** Writes a tree of all files that are not ignored or are in the commit. */
  const filesTree = async (commit: string) => {
    const own = apart(ownIndex);
    await own("read-tree", commit);
    // Git leaves out unreadable files, and then exits with an error.
    await own("add", "--all", "--ignore-errors", ".").catch(unlessExit);
    return (await own("write-tree")).trim();
  };

  return {
    restore,
    tree: treeOf,
    async prepare() {
      await mkdir(workdir, { recursive: true });
      await mkdir(join(directory, "info"), { recursive: true });
      await unlock(directory, branch);
      await git("init", "--quiet");
      await writeFile(join(directory, "info", "exclude"), "node_modules/\n.slipway/\n");
      const found = await findHead(git, workdir, directory);
      if (!(await has(order.base)) && order.bundle !== undefined) await unbundle(git, order.bundle);
      if (!(await has(order.base))) {
        throw new TaskRunOver(claimEnd("setup_failed", `commit ${order.base} to start from is missing`));
      }
      await git("update-ref", mainRef, order.base);
      const goesOn = order.from === "last-attempt" && found !== undefined;
      const isRelated = goesOn && (await succeeds(git("merge-base", found, order.base)));
      if (!isRelated) {
        await restore(order.base);
        return order.base;
      }
      await link(workdir, directory, branch);
      await settle(found);
      return found;
    },
    async commit(known, message, merged) {
      await link(workdir, directory, branch);
      await unlock(directory, branch);
      const [head, at] = [await resolve("HEAD"), (await git("symbolic-ref", "-q", "HEAD").catch(() => "")).trim()];
      const own = at === branch ? head : await resolve(branch);
      // An agent's own commits, on the branch or beyond, are part of the work.
      const tip = own !== "" && (await contains(own, known)) ? own : known;
      const parent = head !== "" && head !== tip && (await contains(head, tip)) ? head : tip;
      const tree = await filesTree(parent);
      const isElsewhere = head !== "" && parent !== head && at !== branch;
      if (isElsewhere && merged === undefined && tree === (await treeOf(head))) {
        // The agent only looked at another commit.
        await restore(tip);
        return tip;
      }
      const joins = merged === undefined || (await contains(parent, merged)) ? [] : ["-p", merged];
      const isNew = joins.length > 0 || tree !== (await treeOf(parent));
      const next = isNew ? (await git("commit-tree", tree, "-p", parent, ...joins, "-m", message)).trim() : parent;
      await settle(next);
      return next;
    },
    async latest(tip) {
      const head = await resolve("HEAD");
      return head !== "" && (await contains(head, tip)) ? head : tip;
    },
    isClean: async () => (await git("status", "--porcelain", "--no-renames").catch(() => "?")) === "",
    async fetch(bundle, commit) {
      if (!(await has(commit))) await unbundle(git, bundle);
      return await has(commit);
    },
    async merge(tip, main) {
      await git("update-ref", mainRef, main);
      if (await contains(tip, main)) return { type: "merged", tip };
      const { tree, paths } = await mergeTree(git, tip, main);
      if (paths.length === 0) {
        const merged = (await git("commit-tree", tree, "-p", tip, "-p", main, "-m", "Merge main")).trim();
        await restore(merged);
        return { type: "merged", tip: merged };
      }
      await restore(tip);
      await git("read-tree", "--reset", "-u", tree);
      await git("read-tree", tip);
      return { type: "conflicts", paths, text: await bothSides(git, tip, main, paths) };
    },
    unsolved: (paths) => unsolvedIn(workdir, paths),
    async changes(from, to) {
      const fields = (await git("diff-tree", "-r", "-z", "--name-status", "--no-renames", from, to)).split("\0");
      return fields.flatMap((path, index) => (index % 2 === 1 ? [{ path, status: statusOf(fields[index - 1]) }] : []));
    },
    async blobs(commit, names) {
      const listed = (await git("ls-tree", "-r", "-z", commit)).split("\0");
      return listed.filter((entry) => names.has(entry.slice(entry.search(/[^/\t]*$/)))).join("\n");
    },
    async extract(commit, target) {
      const index = `${target}.index`;
      const removeIndex = () => Promise.all([index, `${index}.lock`].map((path) => rm(path, { force: true })));
      await removeIndex();
      await apart(index, target)("read-tree", "--reset", "-u", commit);
      await removeIndex();
    },
    async bundle(path, tip, known) {
      await mkdir(dirname(path), { recursive: true });
      const excluded = await Promise.all(known.map(async (commit) => `^${await resolve(commit)}`));
      // A killed git may have left these.
      await rm(ownRefs, { recursive: true, force: true, maxRetries: 3 });
      await rm(`${path}.new.lock`, { force: true });
      await withOwnRefs("init", "--quiet", "--template=");
      await withOwnRefs("update-ref", branch, tip);
      await withOwnRefs("bundle", "create", "--quiet", `${path}.new`, branch, ...excluded);
      const heads = await git("bundle", "list-heads", `${path}.new`);
      if (heads.trim() !== `${tip} ${branch}`) throw new Error("the branch was moved while it was offered");
      await rename(`${path}.new`, path);
    },
  };
}

function statusOf(letter: string | undefined): Change["status"] {
  if (letter === "A") return "added";
  return letter === "D" ? "deleted" : "changed";
}

/** With an invalid bundle the commits stay missing, and the caller notices that. */
async function unbundle(git: Git, bundle: string): Promise<void> {
  await git("bundle", "unbundle", bundle).catch(unlessExit);
}

async function succeeds(command: Promise<string>): Promise<boolean> {
  try {
    await command;
    return true;
  } catch (error) {
    unlessExit(error);
    return false;
  }
}
