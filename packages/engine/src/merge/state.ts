import { createHash } from "node:crypto";
import {
  type AttemptId,
  type CandidateId,
  checkPlaceSchema,
  compareIds,
  disputeJudges,
  findingsSchema,
  gateTargets,
} from "@slipway/contract";
import { z } from "zod";
import type { Kept } from "../ports/kept.ts";
import type { OfCandidate } from "../ports/work.ts";

/**
 * Everything that the decisions of a merge queue follow from, as its build keeps it. Times are milliseconds since
 * 1970.
 */
const name = z.string();
const names = z.array(name);
const candidateId = z.custom<CandidateId>((value) => typeof value === "string");
const attemptId = z.custom<AttemptId>((value) => typeof value === "string");
const atMs = z.int();
const count = z.int().min(0);
const files = { commit: name, tree: name };

/**
 * The tasks that the files must contain, by `digestOf`: all names with each result would grow with the square of the
 * tasks.
 */
// Earlier queues kept all names, or none.
const tasks = z.union([name, names.transform(digestOf)]).default(digestOf([]));

/** What a verdict is about: the same files can be right for one task and lack what another one promises. */
const judged = { tree: name, tasks };

const offer = {
  id: candidateId,
  task: name,
  attempt: attemptId,
  /** Tasks that must be on main before it. */
  dependencies: names,
  ...files,
  /** How long the task's dependents take at least: see `tailsOf`. */
  tailMs: z.number(),
};

const suspicion = z.strictObject({
  ...judged,
  gate: name,
  commit: name,
  /** What main was. */
  base: name,
});

const candidate = z.strictObject({
  ...offer,
  offeredAtMs: atMs,
  /** Its place in the line of candidates that are tested on top of each other, lowest first. Null: not in the line. */
  place: count.nullable(),
  /** It failed on top of main, and is out of the line until the failure repeats or turns out to be a flake. */
  suspicion: suspicion.nullable(),
});

const clean = z.strictObject({ type: z.literal("clean"), ...files });
const mergeOutcome = z.discriminatedUnion("type", [
  clean,
  /** No paths: git could not merge them at all. */
  z.strictObject({ type: z.literal("conflict"), paths: names }),
]);

/** What comes of merging a candidate's commit into a base: main, main and those ahead, or another candidate. */
const testMerge = z.strictObject({
  base: name,
  commit: name,
  /** Null: asked for. */
  outcome: mergeOutcome.nullable(),
});

const run = z.strictObject({
  ...judged,
  run: count,
  gate: name,
  candidate: candidateId,
  /** What is below the candidate. Null: the candidate is tested alone. */
  base: name.nullable(),
  commit: name,
  /** Tasks of the candidates between main and this one: the tree contains them. */
  ahead: names.default([]),
  startedAtMs: atMs,
});

const result = z.strictObject({
  ...judged,
  gate: name,
  passed: z.boolean(),
  /** Together with `passed`: a flake. */
  failures: count,
  /** Consecutive runs that broke, except those that met a temporary trouble. */
  errors: count,
  /**
   * The temporary trouble of the last run, which is not the candidate's fault, and how many consecutive runs met one.
   */
  trouble: z.strictObject({ times: count, reason: z.string() }).nullable().default(null),
  /** After an error or a trouble the gate does not run again before this time. */
  notBeforeMs: atMs,
  /** Of the last run that failed. */
  findings: findingsSchema,
  failedAtMs: atMs.default(0),
  /** The one check that failed in it. Null: several, or something else. */
  failedAt: checkPlaceSchema.nullable().default(null),
});

/** A rejected candidate that failed one check and passed all else. */
const refusal = z.strictObject({ task: name, candidate: candidateId, tree: name, at: checkPlaceSchema });

const dispute = z.strictObject({
  /** From 1, per build. */
  number: count,
  round: count,
  task: name,
  at: checkPlaceSchema,
  candidates: z.array(candidateId),
  /** `due`, `underway`: whether the check is wrong is looked into. `user`: it waits for the user. Then: what is wrong. */
  status: z.enum(["due", "underway", "user", "app", "check"]),
  by: z.enum(disputeJudges),
  because: z.string().nullable(),
  /** What agents may know of it. */
  advice: z.string().nullable(),
  openedAtMs: atMs,
});

const queueSchema = z.strictObject({
  wish: z.enum(["run", "pause", "cancel"]),
  /** How many runs of gates there may be at the same time. */
  slots: count,
  /** How many candidates are tested on top of each other: one more after each merge, half as many after a failure. */
  window: count,
  gates: z.array(z.strictObject({ name, on: z.enum(gateTargets), rank: z.number(), limitMs: z.number() })),
  main: z.strictObject(files),
  /** Tasks that are on main: merged, or found to be there. */
  merged: names,
  /** Those that are not merged, rejected or withdrawn. */
  candidates: z.array(candidate),
  /** Ids of the others, by which a repeated offer is recognised. */
  ended: names,
  /** A move of main that is asked for; whether it has happened is not known yet. */
  merging: z
    .strictObject({ candidate: candidateId, task: name, /** Where main must be. */ from: name, to: name, tree: name })
    .nullable(),
  testMerges: z.array(testMerge),
  runs: z.array(run),
  /** The number of the last run. */
  started: count,
  /** By gate and by what it ran on, whoever offered that. */
  results: z.array(result),
  /** Since the check was last disputed. */
  refusals: z.array(refusal).default([]),
  disputes: z.array(dispute).default([]),
});

export type MergeQueue = Kept<typeof queueSchema>;
export type Main = MergeQueue["main"];
export type Candidate = MergeQueue["candidates"][number];
/** An attempt's result, as it is offered. */
export type Offer = Pick<Candidate, keyof typeof offer>;
export type Suspicion = Kept<typeof suspicion>;
export type TestMerge = MergeQueue["testMerges"][number];
export type MergeOutcome = Kept<typeof mergeOutcome>;
export type CleanMerge = Kept<typeof clean>;
export type GateRun = MergeQueue["runs"][number];
export type GateResult = MergeQueue["results"][number];
export type Dispute = MergeQueue["disputes"][number];
export type Judged = Pick<GateResult, keyof typeof judged>;

/** With fewer, nothing is tested ahead of its turn. */
export const minWindow = 2;

export function openQueue({ gates, slots, main }: Pick<MergeQueue, "gates" | "slots" | "main">): MergeQueue {
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
    refusals: [],
    disputes: [],
  };
}

/** Null: the build has no main yet. */
export function readQueue(kept: unknown): MergeQueue | null {
  return queueSchema.nullable().parse(kept);
}

/**
 * A candidate goes before those that were offered later by up to the time that its task's dependents take: the
 * longest path goes first, and nobody waits forever.
 */
export function byUrgency(a: Candidate, b: Candidate): number {
  return a.offeredAtMs - a.tailMs - (b.offeredAtMs - b.tailMs) || compareIds(a.id, b.id);
}

/** How actions and work items name it. */
export function nameOf({ id, task }: Pick<Candidate, "id" | "task">): OfCandidate {
  return { candidate: id, task };
}

/** What gates judge of the candidate alone. */
export function aloneOf({ tree, task }: Pick<Candidate, "tree" | "task">): Judged {
  return { tree, tasks: digestOf([task]) };
}

/** Short, and the same for the same tasks in any order. */
export function digestOf(tasks: readonly string[]): string {
  return createHash("sha256")
    .update(JSON.stringify(tasks.toSorted(compareIds)))
    .digest("hex")
    .slice(0, 32);
}

/** The line, first candidate first. */
export function inLine({ candidates }: MergeQueue): Candidate[] {
  return candidates.filter(({ place }) => place !== null).sort((a, b) => (a.place ?? 0) - (b.place ?? 0));
}

/** What gates judge once the candidate is merged into main. Null: not known to merge cleanly. */
export function onMainOf(queue: MergeQueue, { commit, task }: Candidate): (Judged & CleanMerge) | null {
  const outcome = outcomeOf(queue, queue.main.commit, commit);
  return outcome?.type === "clean" ? { ...outcome, tasks: digestOf([...queue.merged, task]) } : null;
}

export function outcomeOf({ testMerges }: MergeQueue, base: string, commit: string): MergeOutcome | null {
  return testMerges.find((known) => known.base === base && known.commit === commit)?.outcome ?? null;
}
