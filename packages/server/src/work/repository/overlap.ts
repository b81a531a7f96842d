import { changedFiles } from "./changes.ts";
import { type Git, GitFailed, type GitOptions } from "./git.ts";
import { fieldsOf, line, lines } from "./objects.ts";

/** Two open branches that change the same files or conflict. */
export interface Overlap {
  readonly commits: readonly [string, string];
  /** Files that both change. */
  readonly files: readonly string[];
  /** Files that git cannot merge. Empty: the two merge textually. */
  readonly conflicts: readonly string[];
}

export interface OverlapOptions {
  readonly main: string;
  readonly branches: readonly string[];
  readonly signal?: AbortSignal | undefined;
}

const mostPairs = 20_000;
const mostCommits = 2000;
/** Longer than git waits on a busy machine: a timeout counts as a conflict for ever. */
const leastTimeMs = 60_000;
/** The branches do not merge and git does not say where, for example because it crashed. */
const unknown: readonly string[] = ["?"];

/** Finds overlaps of branches. Commits never change, so results are remembered. */
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

/** A branch's own changes since it left main: they stay the same when main moves. */
async function changedSince(git: Git, main: string, commit: string, signal: AbortSignal | undefined) {
  const base = line(await git.run(["merge-base", main, commit], { signal }));
  const files = await changedFiles(git, base, commit, { signal });
  return files.flatMap(({ path, from }) => (from === undefined ? [path] : [path, from]));
}

/** Finds the conflicts of all pairs in one process. If git crashes, retries each pair alone to find the culprit. */
async function* mergeAll(
  git: Git,
  pairs: readonly string[],
  options: Pick<GitOptions, "signal">,
): AsyncGenerator<[pair: string, files: readonly string[]]> {
  if (pairs.length === 0) return;
  const args = ["merge-tree", "--write-tree", "-z", "--name-only", "--no-messages", "--stdin"];
  try {
    const { stdout } = await git.run(args, {
      ...options,
      input: lines(pairs),
      timeMs: leastTimeMs + pairs.length * 1000,
    });
    const merges = parseMerges(stdout);
    for (const [index, pair] of pairs.entries()) yield [pair, merges[index] ?? unknown];
  } catch (error) {
    if (!(error instanceof GitFailed)) throw error;
    if (pairs.length > 1) for (const pair of pairs) yield* mergeAll(git, [pair], options);
    else for (const pair of pairs) yield [pair, unknown];
  }
}

/** Each merge is: 1 if clean else 0, the tree, the paths in conflict, an empty field. */
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
