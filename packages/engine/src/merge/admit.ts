import type { MergeAction } from "./actions.ts";
import type { View } from "./line.ts";
import { gatesOn, isReady, type Results } from "./results.ts";
import { byUrgency, type Candidate, inLine, type MergeQueue, nameOf, outcomeOf } from "./state.ts";

/** The most urgent candidate that passed everything else joins the line, while the line is shorter than the window. */
export function lineUp({ queue, results, plan }: View): MergeAction[] {
  const going = plan.filter(({ stuck }) => !stuck);
  // What the next one would stand on is not known yet.
  if (going.some(({ merge }) => merge === null) || going.length >= queue.window) return [];
  const ahead = going.map(({ candidate }) => candidate);
  const candidate = queue.candidates
    .filter((one) => one.place === null && one.suspicion === null)
    .filter((one) => mayFollow(queue, results, ahead, one))
    .sort(byUrgency)[0];
  const last = inLine(queue).at(-1)?.place ?? 0;
  return candidate ? [{ type: "line-up", ...nameOf(candidate), place: last + 1 }] : [];
}

function mayFollow(queue: MergeQueue, results: Results, ahead: readonly Candidate[], candidate: Candidate): boolean {
  const tasks = new Set([...queue.merged, ...ahead.map(({ task }) => task)]);
  return (
    candidate.dependencies.every((task) => tasks.has(task)) &&
    isReady(queue, results, candidate) &&
    (gatesOn(queue, "others").length === 0 || isCompatible(queue, ahead, candidate))
  );
}

/** With main, and with those ahead; otherwise it waits for what becomes of them. */
function isCompatible(queue: MergeQueue, ahead: readonly Candidate[], candidate: Candidate): boolean {
  const goesWith = (base: string, commit: string) => outcomeOf(queue, base, commit)?.type === "clean";
  return (
    goesWith(queue.main.commit, candidate.commit) &&
    ahead.every((other) => {
      const [one, two] = pair(other, candidate);
      return goesWith(one.commit, two.commit);
    })
  );
}

/** Two candidates in the one order in which they are merged for a test. */
function pair(a: Candidate, b: Candidate): readonly [Candidate, Candidate] {
  return a.id < b.id ? [a, b] : [b, a];
}

function pairsOf(candidates: readonly Candidate[]): (readonly [Candidate, Candidate])[] {
  return candidates.flatMap((a, index) => candidates.slice(index + 1).map((b) => pair(a, b)));
}

/** Of each candidate in the line with what is below it, and for compatibility of all with main and with each other. */
export function testMerges({ queue, plan }: View): MergeAction[] {
  const { main, candidates } = queue;
  const onOthers = gatesOn(queue, "others").length > 0;
  const wanted = [
    ...plan.map(({ candidate, base }) => ({ base, candidate })),
    ...(onOthers ? candidates.map((candidate) => ({ base: main.commit, candidate })) : []),
    ...(onOthers ? pairsOf(candidates).map(([one, two]) => ({ base: one.commit, candidate: two })) : []),
  ];
  const known = new Set(queue.testMerges.map(({ base, commit }) => `${base} ${commit}`));
  return wanted.flatMap(({ base, candidate }) => {
    const { commit } = candidate;
    const name = `${base} ${commit}`;
    if (known.has(name)) return [];
    known.add(name);
    return [{ type: "test-merge", ...nameOf(candidate), base, commit } as const];
  });
}
