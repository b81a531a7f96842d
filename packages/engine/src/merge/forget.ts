import type { MergeQueue, TestMerge } from "./state.ts";

/** The latest failures are the most likely to be offered again. */
const maxResults = 200;

/**
 * The queue without what cannot be of use again: test merges with bases that are gone, and gates that passed on trees
 * that are gone. Failures stay, so that the same files, offered again, fail at once; so do flakes.
 */
export function forget(queue: MergeQueue): MergeQueue {
  const testMerges = stillOfUse(queue);
  const trees = treesOf({ ...queue, testMerges });
  const results = queue.results.filter(({ tree, passed, failures }) => !passed || failures > 0 || trees.has(tree));
  return { ...queue, testMerges, results: results.slice(-maxResults) };
}

/**
 * The queue once main has moved: what was found on another main says nothing about files that are offered from now
 * on, and a pass that came after a failure counts only for the main on which it was seen.
 */
export function forgetMain(queue: MergeQueue): MergeQueue {
  const left = forget(queue);
  const trees = treesOf(left);
  const results = left.results.filter(({ tree, passed, failures }) => trees.has(tree) && !(passed && failures > 0));
  return { ...left, results };
}

/** Everything that may still be merged. */
function treesOf({ main, candidates, merging, testMerges }: MergeQueue): ReadonlySet<string | undefined> {
  return new Set([
    ...candidates.flatMap(({ tree, suspicion }) => (suspicion ? [tree, suspicion.tree] : [tree])),
    ...testMerges.flatMap(({ outcome }) => (outcome?.type === "clean" ? [outcome.tree] : [])),
    ...[main.tree, merging?.tree],
  ]);
}

/** Of the open candidates: with each other, with main, and with the results of these. */
function stillOfUse({ main, candidates, testMerges }: MergeQueue): readonly TestMerge[] {
  const commits = new Set(candidates.map(({ commit }) => commit));
  const bases = new Set([main.commit, ...commits]);
  const open = testMerges.filter(({ commit }) => commits.has(commit));
  for (let found = -1; found < bases.size; ) {
    found = bases.size;
    for (const { base, outcome } of open) {
      if (bases.has(base) && !commits.has(base) && outcome?.type === "clean") bases.add(outcome.commit);
    }
  }
  return open.filter(({ base }) => bases.has(base));
}
