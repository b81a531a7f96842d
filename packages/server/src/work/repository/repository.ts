import { existsSync } from "node:fs";
import { mkdir, readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { type AttemptId, attemptIdSchema, type CandidateId, candidateIdSchema, SlipwayError } from "@slipway/contract";
import { type ChangedFile, type Cut, changedFiles, diffText } from "./changes.ts";
import { type CommitOptions, writeCommit } from "./commit.ts";
import { type CreateOptions, createRepository, mainRef, originFile } from "./create.ts";
import { createGit, type Git, GitFailed, type GitSettings } from "./git.ts";
import type { Origin } from "./import.ts";
import { type Merged, mergeTrees } from "./merge.ts";
import { checkObjectNames, line, lines } from "./objects.ts";
import { createOverlaps, type Overlap, type OverlapOptions } from "./overlap.ts";
import { makeBundle } from "./quarantine/bundle.ts";
import { type Examined, examine, usualExamineLimits } from "./quarantine/examine.ts";
import { openQuarantine, sweepQuarantine } from "./quarantine/quarantine.ts";
import { checkRef, look, receive, type TakeLimits, type Taken, usualTakeLimits } from "./quarantine/take.ts";
import { type FoundFile, findFile, readFiles } from "./read.ts";
import { createRefs } from "./refs.ts";

/** A build's git repository on the host. It never checks out a tree; callers name commits in full. */
export interface BuildRepository {
  /** Makes the repository once: a second call returns what the first made. */
  create(options: CreateOptions): Promise<Created>;
  main(): Promise<string>;
  treeOf(commit: string): Promise<string>;
  /** Takes a candidate from a sandbox's bundle, or refuses it with findings. Keeps it until it is discarded. */
  take(bundle: AsyncIterable<Uint8Array>, options: TakeOptions): Promise<Taken>;
  /** Takes the branch of a working attempt, with the same checks. The next one replaces it. */
  takeOpen(bundle: AsyncIterable<Uint8Array>, options: TakeOpenOptions): Promise<Taken>;
  /** The kept candidates and their commits. */
  candidates(): Promise<Map<CandidateId, string>>;
  openBranches(): Promise<Map<AttemptId, string>>;
  discard(branch: CandidateId | AttemptId): Promise<void>;
  merge(options: Signal & { readonly ours: string; readonly theirs: string }): Promise<Merged>;
  commit(options: CommitOptions): Promise<string>;
  /** Moves main forward in one step. Returns false if it was at `to` already; fails with `main_moved` if it is elsewhere. */
  moveMain(from: string, to: string): Promise<boolean>;
  isAncestor(ancestor: string, commit: string): Promise<boolean>;
  /** The last common commit. */
  forkPoint(one: string, other: string): Promise<string | undefined>;
  overlap(options: Omit<OverlapOptions, "main">): Promise<Overlap[]>;
  /** A commit's tree as a tar archive with the exact bytes of the blobs: attributes have no effect. */
  files(commit: string, options?: Signal): AsyncGenerator<Buffer>;
  /** The regular files of a commit that `wants` selects; called with every path. */
  read(commit: string, wants: (path: string) => boolean, options?: Signal): Promise<Map<string, Buffer>>;
  /** One of a commit's files. Fails with `file_not_found` or `not_a_file`. */
  find(commit: string, path: string, options: Signal & { readonly mostBytes: number }): Promise<FoundFile>;
  /** A bundle of `tip` under one ref, for a receiver that has `base`. */
  bundle(options: BundleOptions): AsyncGenerator<Buffer>;
  diff(from: string, to: string, options?: Signal & { readonly mostBytes?: number }): Promise<Cut>;
  /** `from` null: all files of `to`. */
  changedFiles(from: string | null, to: string, options?: Signal): Promise<ChangedFile[]>;
  /** Facts for gates about what `to` changes in `from`. */
  examine(from: string, to: string, options?: Signal): Promise<Examined>;
}

interface Signal {
  readonly signal?: AbortSignal | undefined;
}

export interface Created {
  readonly main: string;
  /** Null: the build started empty. */
  readonly origin: Origin | null;
}

export interface TakeOptions extends Signal {
  readonly id: CandidateId;
  /** The only ref of the bundle. */
  readonly ref: string;
  /** The commit that the sandbox started with. */
  readonly base: string;
  readonly limits?: Partial<TakeLimits>;
}

export interface TakeOpenOptions extends Omit<TakeOptions, "id" | "base"> {
  readonly attempt: AttemptId;
}

interface BundleOptions extends Signal {
  readonly base?: string;
  readonly tip: string;
  readonly ref?: string;
}

export interface BuildRepositoryOptions {
  /** Holds the repository and its quarantine; made if missing. */
  readonly directory: string;
  /** Only PATH is used, for the git program. */
  readonly environment: GitSettings["environment"];
}

export const repositoryName = "repository.git";
const packsBeforeRepack = 50;
/** Every repository has this object. */
const emptyTree = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";
const diffBytes = 256 * 1024;

/** Opens the repository of a build, and removes what ended processes left in it. */
export async function openBuildRepository({
  directory,
  environment,
}: BuildRepositoryOptions): Promise<BuildRepository> {
  const path = join(directory, repositoryName);
  const waiting = join(directory, "quarantine");
  await mkdir(waiting, { recursive: true, mode: 0o700 });
  await sweepQuarantine(waiting);
  const git = createGit({ directory: path, environment });
  const refs = createRefs(git, join(directory, "refs.lock"), environment["PATH"]);
  const overlaps = createOverlaps();
  if (existsSync(path)) {
    await refs.sweep();
    await repack(git, join(directory, "repack.lock"));
  }

  const main = async () => {
    const commit = existsSync(path) ? await refs.read(mainRef) : undefined;
    if (commit === undefined) throw new SlipwayError("commit_not_found", `${path} has no main`);
    return commit;
  };
  const checkCommits = async (...commits: readonly string[]) => {
    checkObjectNames(...commits);
    const types = line(await git.run(["cat-file", "--batch-check=%(objecttype)"], { input: lines(commits) })).split(
      "\n",
    );
    const missing = commits.find((_, index) => types[index] !== "commit");
    if (missing !== undefined) throw new SlipwayError("commit_not_found", `there is no commit ${missing}`);
  };
  const isAncestor = async (ancestor: string, commit: string) => {
    await checkCommits(ancestor, commit);
    const { exitCode } = await git.run(["merge-base", "--is-ancestor", ancestor, commit], { expected: [0, 1] });
    return exitCode === 0;
  };
  const treeOf = async (commit: string) => {
    await checkCommits(commit);
    return line(await git.run(["rev-parse", "--verify", `${commit}^{tree}`]));
  };

  const takeIn = async (
    bundle: AsyncIterable<Uint8Array>,
    { ref, base, limits: own, signal }: Omit<TakeOptions, "id" | "base"> & Partial<Pick<TakeOptions, "base">>,
  ) => {
    checkRef(ref);
    if (base !== undefined) await checkCommits(base);
    const limits = { ...usualTakeLimits, ...own };
    const now = await main();
    await using quarantine = await openQuarantine(waiting, git);
    const received = await receive(quarantine, bundle, { ref, known: [now, base ?? now], limits, signal });
    const taken = await look(quarantine.git, received, { base, main: now, limits, signal });
    await quarantine.keep();
    return taken;
  };
  const branchesBelow = async <Id extends string>(below: string, schema: { parse(text: unknown): Id }) => {
    if (!existsSync(path)) return new Map<Id, string>();
    const { stdout } = await git.run(["for-each-ref", "--format=%(refname:lstrip=2) %(objectname)", below]);
    const pairs = stdout.toString("latin1").split("\n").slice(0, -1);
    return new Map(pairs.map((pair) => pair.split(" ")).map(([id, commit = ""]) => [schema.parse(id), commit]));
  };

  return {
    main,
    treeOf,
    isAncestor,
    async forkPoint(one, other) {
      await checkCommits(one, other);
      const found = await git.run(["merge-base", one, other], { expected: [0, 1] });
      return found.exitCode === 0 ? line(found) : undefined;
    },
    async create(options) {
      if (!existsSync(path)) {
        const limits = { ...usualTakeLimits, ...options.limits };
        await using quarantine = await openQuarantine(waiting, git);
        const place = { directory: path, environment, scratch: quarantine.directory };
        await createRepository(place, { ...options, limits });
      }
      const origin = JSON.parse(await readFile(join(path, originFile), "utf8")) as Origin | null;
      return { main: await main(), origin };
    },

    async take(bundle, { id, ...options }) {
      if (!candidateIdSchema.safeParse(id).success) throw new SlipwayError("invalid_request", "not a candidate's id");
      const taken = await takeIn(bundle, options);
      const move = await refs.move(branchRef(id), undefined, taken.commit, options.signal);
      if (move !== "elsewhere") return taken;
      throw new SlipwayError("candidate_exists", `${id} is another commit already`);
    },

    async takeOpen(bundle, { attempt, ...options }) {
      const ref = branchRef(attemptIdSchema.parse(attempt));
      const taken = await takeIn(bundle, options);
      await refs.move(ref, await refs.read(ref), taken.commit, options.signal);
      return taken;
    },

    candidates: () => branchesBelow("refs/candidates", candidateIdSchema),
    openBranches: () => branchesBelow("refs/open", attemptIdSchema),

    async discard(branch) {
      const ref = branchRef(branch);
      const at = await refs.read(ref);
      if (at !== undefined) await refs.move(ref, at, undefined);
    },

    async merge({ ours, theirs, signal }) {
      await checkCommits(ours, theirs);
      return await mergeTrees(git, ours, theirs, { signal });
    },

    commit: (options) => writeCommit(git, options),

    async moveMain(from, to) {
      if (!(await isAncestor(from, to))) throw new SlipwayError("invalid_request", `${to} does not follow ${from}`);
      const move = await refs.move(mainRef, from, to);
      if (move === "elsewhere") throw new SlipwayError("main_moved", `main is no longer at ${from}`);
      return move === "moved";
    },

    async overlap(options) {
      await checkCommits(...options.branches);
      // Trial merges write their objects there and leave nothing behind.
      await using scratch = await openQuarantine(waiting, git);
      return await overlaps(scratch.git, { ...options, main: await main() });
    },

    async *files(commit, options = {}) {
      await checkCommits(commit);
      const limits = { timeMs: 600_000, outputBytes: Number.POSITIVE_INFINITY };
      yield* git.stream(["archive", "--format=tar", commit], { ...options, ...limits });
    },

    async read(commit, wants, options) {
      await checkCommits(commit);
      return await readFiles(git, commit, wants, options);
    },

    async find(commit, path, options) {
      await checkCommits(commit);
      return await findFile(git, commit, path, options);
    },

    async *bundle({ base, tip, ref = mainRef, signal }) {
      checkRef(ref);
      await checkCommits(tip, ...(base === undefined ? [] : [base]));
      yield* makeBundle(git, { base, tip, ref }, { signal });
    },

    async diff(from, to, { mostBytes = diffBytes, signal } = {}) {
      await checkCommits(from, to);
      return await diffText(git, from, to, { mostBytes, signal });
    },

    async changedFiles(from, to, options) {
      await checkCommits(to, ...(from === null ? [] : [from]));
      return await changedFiles(git, from ?? emptyTree, to, options);
    },

    async examine(from, to, options) {
      await checkCommits(from, to);
      return await examine(git, await changedFiles(git, from, to, options), usualExamineLimits, options);
    },
  };
}

/** The ref of a candidate, or of an attempt whose branch is not offered yet. */
export function branchRef(id: CandidateId | AttemptId): string {
  const candidate = candidateIdSchema.safeParse(id);
  return candidate.success ? `refs/candidates/${candidate.data}` : `refs/open/${attemptIdSchema.parse(id)}`;
}

/** Merges packs: each candidate is one pack, and git searches them all. Keeps unreachable objects. */
async function repack(git: Git, lock: string): Promise<void> {
  const packs = (await readdir(join(git.directory, "objects/pack"))).filter((name) => name.endsWith(".pack"));
  if (packs.length <= packsBeforeRepack) return;
  try {
    await git.run(["repack", "--geometric=2", "-d", "-q"], { timeMs: 600_000, lock });
  } catch (error) {
    // Repacking only affects speed.
    if (!(error instanceof GitFailed)) throw error;
  }
}
