import { changedFiles } from "./changes.ts";
import { type Git, GitFailed, type GitOptions } from "./git.ts";
import { fieldsOf } from "./objects.ts";

/** Two open branches that have to do with each other. */
export interface Overlap {
  readonly commits: readonly [string, string];
  /** That both change. */
  readonly files: readonly string[];
  /** That git can not merge. Empty: the two merge textually. */
  readonly conflicts: readonly string[];
}

export interface OverlapOptions {
  readonly main: string;
  readonly branches: readonly string[];
  readonly signal?: AbortSignal | undefined;
}

const mostPairs = 20_000;
const mostCommits = 2000;
/** Longer than a busy machine lets git wait: what is not known by then is taken for a conflict, for ever. */
const leastTimeMs = 60_000;
/** They do not merge, and git does not tell where: it may have crashed on them. */
const unknown: readonly string[] = ["?"];

/** Finds overlaps of branches. Commits never change, so that what is known of two is known for ever. */
export function createOverlaps() {
  const conflicts = new Map<string, readonly string[]>();
  const changed = new Map<string, readonly string[]>();
  return async (git: Git, { main, branches, signal }: OverlapOptions): Promise<Overlap[]> => {
    const commits = [...new Set(branches)].toSorted();
    for (const commit of commits) {
      if (!changed.has(commit)) remember(changed, commit, await changedSince(git, main, commit, signal), mostCommits);
    }
    const pairs = commits.flatMap((one, index) => commits.slice(index + 1).map((other) => [one, other] as const));
    const untried = pairs.map((pair) => pair.join(" ")).filter((key) => !conflicts.has(key));
    for await (const [key, files] of mergeAll(git, untried, { signal })) remember(conflicts, key, files, mostPairs);
    return pairs.flatMap((pair) => {
      const [ours, theirs] = pair.map((commit) => changed.get(commit) ?? []);
      const both = new Set(theirs);
      const files = (ours ?? []).filter((path) => both.has(path));
      const met = conflicts.get(pair.join(" ")) ?? [];
      return files.length + met.length === 0 ? [] : [{ commits: pair, files, conflicts: met }];
    });
  };
}

function remember<T>(known: Map<string, T>, key: string, value: T, most: number): void {
  known.set(key, value);
  const [oldest] = known.keys();
  if (known.size > most && oldest !== undefined) known.delete(oldest);
}

/** A branch's own changes: since it left main, which stays the same when main goes on. */
async function changedSince(git: Git, main: string, commit: string, signal: AbortSignal | undefined) {
  const { stdout } = await git.run(["merge-base", main, commit], { signal });
  const files = await changedFiles(git, stdout.toString("latin1").trim(), commit, { signal });
  return files.flatMap(({ path, from }) => (from === undefined ? [path] : [path, from]));
}

/** The files in conflict of each pair, by one process; when git crashes, by one for each pair, so as to know on which. */
async function* mergeAll(
  git: Git,
  pairs: readonly string[],
  options: Pick<GitOptions, "signal">,
): AsyncGenerator<[pair: string, files: readonly string[]]> {
  if (pairs.length === 0) return;
  const args = ["merge-tree", "--write-tree", "-z", "--name-only", "--no-messages", "--stdin"];
  const input = pairs.map((pair) => `${pair}\n`).join("");
  try {
    const { stdout } = await git.run(args, { ...options, input, timeMs: leastTimeMs + pairs.length * 1000 });
    const merges = parseMerges(stdout);
    for (const [index, pair] of pairs.entries()) yield [pair, merges[index] ?? unknown];
  } catch (error) {
    if (!(error instanceof GitFailed)) throw error;
    if (pairs.length > 1) for (const pair of pairs) yield* mergeAll(git, [pair], options);
    else for (const pair of pairs) yield [pair, unknown];
  }
}

/** Of each merge: 1 when it is clean and else 0, the tree, the paths in conflict, an empty field. */
function parseMerges(answer: Buffer): (readonly string[])[] {
  const merges: (readonly string[])[] = [];
  const fields = fieldsOf(answer).values();
  for (const status of fields) {
    fields.next();
    const paths: string[] = [];
    for (let path = fields.next().value; path; path = fields.next().value) paths.push(path);
    merges.push(status === "0" && paths.length === 0 ? unknown : paths);
  }
  return merges;
}
