import { createHash } from "node:crypto";
import { compareIds, type Finding, type Gate, type GateVerdict } from "@slipway/contract";

/** All that the decisions of a merge queue follow from. Plain data; times are milliseconds since 1970. */
export interface MergeQueue {
  readonly wish: "run" | "pause" | "cancel";
  /** How many runs of gates there may be at the same time. */
  readonly slots: number;
  /** How many candidates are tested on top of each other: more after each merge, half as many after a failure. */
  readonly window: number;
  readonly gates: readonly Gate[];
  readonly main: Main;
  /** Tasks that are on main: merged, or found to be there. */
  readonly merged: readonly string[];
  /** Those that are neither merged nor rejected nor withdrawn. */
  readonly candidates: readonly Candidate[];
  /** Ids of the others: an offer that is told again is known by them. */
  readonly ended: readonly string[];
  /** Asked for, and not known yet whether it has happened. */
  readonly merging: PendingMerge | null;
  readonly testMerges: readonly TestMerge[];
  readonly runs: readonly GateRun[];
  /** How many runs there have been: the number of the last one. */
  readonly started: number;
  /** By gate and by what it was run on, whoever offered that. */
  readonly results: readonly GateResult[];
}

export interface Main {
  readonly commit: string;
  readonly tree: string;
}

/** An attempt's result, as it is offered. */
export interface Offer {
  readonly id: string;
  readonly task: string;
  readonly attempt: string;
  /** Tasks that must be on main before it. */
  readonly dependencies: readonly string[];
  readonly commit: string;
  readonly tree: string;
  /** How long the task's dependents take at least: see `tailsOf`. */
  readonly tailMs: number;
}

export interface Candidate extends Offer {
  readonly offeredAtMs: number;
  /** In the line of those that are tested on top of each other, lowest first. Null: not in it. */
  readonly place: number | null;
  /** It has failed on top of main, and is out of the line until that is seen again or turns out to be a flake. */
  readonly suspicion: Suspicion | null;
}

/** What a gate's verdict is about: the same files may be good for one task and lack what another one promises. */
export interface Judged {
  readonly tree: string;
  /**
   * By `digestOf`, all that are to be in the files: of a candidate alone its own, on main also those that are on it or ahead.
   * Their names are not kept with each result: those of all results would grow with the square of the tasks.
   */
  readonly tasks: string;
}

export interface Suspicion extends Judged {
  readonly gate: string;
  readonly commit: string;
  /** What main was. */
  readonly base: string;
}

export interface PendingMerge {
  readonly candidate: string;
  readonly task: string;
  /** What main must be at, and what it moves to. */
  readonly from: string;
  readonly to: string;
  readonly tree: string;
}

/** What comes of merging a candidate's commit into a base: main, main and those ahead, or another candidate. */
export interface TestMerge {
  readonly base: string;
  readonly commit: string;
  /** Null: asked for. */
  readonly outcome: MergeOutcome | null;
}

export type MergeOutcome =
  | CleanMerge
  /** No paths: git could not merge them at all. */
  | { readonly type: "conflict"; readonly paths: readonly string[] };

export interface CleanMerge {
  readonly type: "clean";
  readonly commit: string;
  readonly tree: string;
}

export interface GateRun extends Judged {
  readonly run: number;
  readonly gate: string;
  readonly candidate: string;
  /** What is below the candidate. Null: the candidate alone is looked at. */
  readonly base: string | null;
  readonly commit: string;
  /** Tasks of the candidates between main and it: they are in the tree, too. */
  readonly ahead: readonly string[];
  readonly startedAtMs: number;
}

export interface GateResult extends Judged {
  readonly gate: string;
  readonly passed: boolean;
  /** Together with `passed`: a flake. */
  readonly failures: number;
  /** Runs in a row that broke, but for those that met a trouble which passes. */
  readonly errors: number;
  /** What the last run met that passes and is not the candidate's, and how many have in a row. */
  readonly trouble: { readonly times: number; readonly reason: string } | null;
  /** After an error or a trouble the gate is not run again before. */
  readonly notBeforeMs: number;
  /** Of the last run that failed, and when that was. */
  readonly findings: readonly Finding[];
  readonly failedAtMs: number;
}

export interface RunEnd {
  readonly run: number;
  readonly verdict: GateVerdict;
  readonly findings: readonly Finding[];
  /** Why it broke, when that passes and is not the candidate's. */
  readonly trouble?: string | undefined;
}

export interface NewQueue {
  readonly gates: readonly Gate[];
  readonly slots: number;
  readonly main: Main;
}

/** Less than that, and nothing is tested ahead of its turn. */
export const minWindow = 2;

export function openQueue({ gates, slots, main }: NewQueue): MergeQueue {
  return {
    wish: "run",
    slots,
    window: minWindow,
    gates,
    main,
    merged: [],
    candidates: [],
    ended: [],
    merging: null,
    testMerges: [],
    runs: [],
    started: 0,
    results: [],
  };
}

/**
 * A candidate goes before those that were offered up to as much later as its task's dependents take: the longest path
 * first, and nobody waits for ever.
 */
export function byUrgency(a: Candidate, b: Candidate): number {
  return a.offeredAtMs - a.tailMs - (b.offeredAtMs - b.tailMs) || compareIds(a.id, b.id);
}

/** Without the others. */
export function aloneOf({ tree, task }: Pick<Candidate, "tree" | "task">): Judged {
  return { tree, tasks: digestOf([task]) };
}

/** Short, and the same for the same tasks in whatever order. */
export function digestOf(tasks: readonly string[]): string {
  return createHash("sha256")
    .update(JSON.stringify(tasks.toSorted(compareIds)))
    .digest("hex")
    .slice(0, 32);
}

/** The line, first in it first. */
export function inLine({ candidates }: MergeQueue): Candidate[] {
  return candidates.filter(({ place }) => place !== null).sort((a, b) => (a.place ?? 0) - (b.place ?? 0));
}

/** What gates judge once the candidate is merged into main. Null: it is not known to be clean. */
export function onMainOf(queue: MergeQueue, { commit, task }: Candidate): (Judged & CleanMerge) | null {
  const outcome = outcomeOf(queue, queue.main.commit, commit);
  return outcome?.type === "clean" ? { ...outcome, tasks: digestOf([...queue.merged, task]) } : null;
}

export function outcomeOf({ testMerges }: MergeQueue, base: string, commit: string): MergeOutcome | null {
  return testMerges.find((known) => known.base === base && known.commit === commit)?.outcome ?? null;
}
