import { type CandidateView, type GateState, gateVerdicts, type MergeQueueView } from "@slipway/contract";
import {
  type Candidate,
  type CandidateRecord,
  type GateResultRecord,
  inLine,
  isSameCheck,
  type MergeQueue,
  type MergeRecord,
  outcomeOf,
} from "@slipway/engine";

/** Candidates as users see them: the line first, then those that are not in it yet. */
export function candidateViews(queue: MergeQueue | null, records: readonly CandidateRecord[]): CandidateView[] {
  if (queue === null) return [];
  const line = inLine(queue);
  const others = queue.candidates.filter(({ place }) => place === null);
  return [...line, ...others].flatMap((candidate) => {
    const record = records.find(({ id }) => id === candidate.id);
    if (record === undefined) return [];
    const { id, task, attempt, status, commit, reason, createdAt } = record;
    const index = line.indexOf(candidate);
    return [
      {
        id,
        task,
        attempt,
        status,
        commit,
        offeredAt: createdAt,
        reason: reason ?? troubleOf(queue, candidate),
        place: index < 0 ? null : index + 1,
        gates: gateStatesOf(queue, candidate),
      },
    ];
  });
}

/** What a gate of it waits to pass. */
function troubleOf(queue: MergeQueue, candidate: Candidate): string | null {
  const trees = [candidate.tree, ...treesOnMain(queue, candidate)];
  const results = queue.results.filter(({ tree }) => trees.includes(tree));
  const trouble = results.find((one) => one.trouble !== null)?.trouble;
  if (trouble) return trouble.reason;
  const disputed = queue.disputes.find(
    ({ at, status }) =>
      status !== "app" &&
      status !== "check" &&
      results.some(({ failedAt, passed }) => !passed && failedAt !== null && isSameCheck(failedAt, at)),
  );
  if (disputed === undefined) return null;
  const check = `its check of ${disputed.at.criterion}`;
  if (disputed.status === "user") return `until you decide whether ${check} is wrong`;
  // The user has decided.
  if (disputed.by === "user") return `until ${check} is compiled anew`;
  return `until it is decided whether ${check} is wrong`;
}

function treesOnMain(queue: MergeQueue, candidate: Candidate): string[] {
  const ahead = queue.testMerges.filter(({ commit, base }) => commit === candidate.commit && isBelow(queue, base));
  return ahead.flatMap(({ outcome }) => (outcome?.type === "clean" ? [outcome.tree] : []));
}

function gateStatesOf(queue: MergeQueue, candidate: Candidate): CandidateView["gates"] {
  const trees = treesOnMain(queue, candidate);
  return queue.gates
    .toSorted((a, b) => a.rank - b.rank)
    .map(({ name, on }) => {
      if (on === "others") return { name, state: togetherWithMain(queue, candidate) };
      const state = stateOn(queue, name, on === "candidate" ? [candidate.tree] : trees);
      const isRunning = queue.runs.some((run) => run.gate === name && run.candidate === candidate.id);
      return { name, state: isRunning ? "running" : state };
    });
}

/** What a candidate may be tested on top of: main, or another candidate that is tested on top of it. */
function isBelow({ main, testMerges }: MergeQueue, base: string): boolean {
  return base === main.commit || testMerges.some(({ outcome }) => outcome?.type === "clean" && outcome.commit === base);
}

function togetherWithMain(queue: MergeQueue, { commit }: Candidate): GateState {
  const outcome = outcomeOf(queue, queue.main.commit, commit);
  if (outcome === null) return "running";
  return outcome.type === "clean" ? "passed" : "failed";
}

function stateOn({ results }: MergeQueue, gate: string, trees: readonly string[]): GateState {
  const known = results.filter((result) => result.gate === gate && trees.includes(result.tree));
  if (known.some(({ passed }) => passed)) return "passed";
  if (known.some(({ failures }) => failures > 0)) return "failed";
  return known.some(({ errors, trouble }) => errors > 0 || trouble !== null) ? "broken" : "open";
}

export interface MergeRecords {
  readonly candidates: readonly CandidateRecord[];
  readonly merges: readonly MergeRecord[];
  readonly gateResults: readonly GateResultRecord[];
}

export function mergeQueueViewOf(queue: MergeQueue | null, records: MergeRecords): MergeQueueView {
  // The others are of tasks that main had already.
  const moves = records.merges.filter(({ commit, parent }) => commit !== parent);
  const merges = moves.toSorted((a, b) => a.position - b.position);
  return {
    main: queue?.main.commit ?? merges.at(-1)?.commit ?? null,
    window: queue?.window ?? 0,
    candidates: candidateViews(queue, records.candidates),
    merges: merges.map(({ position, task, commit, mergedAt }) => ({ position, task, commit, mergedAt })),
    gates: gateCounts(records.gateResults),
  };
}

function gateCounts(results: readonly GateResultRecord[]): MergeQueueView["gates"] {
  return [...Map.groupBy(results, ({ gate }) => gate)].map(([name, ofGate]) => {
    const [passed = 0, failed = 0, broken = 0] = gateVerdicts.map(
      (verdict) => ofGate.filter((result) => result.verdict === verdict).length,
    );
    return { name, passed, failed, broken };
  });
}
