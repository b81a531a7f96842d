import { z } from "zod";
import { attemptIdSchema, candidateIdSchema, runIdSchema, sandboxIdSchema } from "../base/ids.ts";
import {
  buildEndReasons,
  buildModes,
  buildSourceSchema,
  buildStatuses,
  evidenceSchema,
  holds,
  pauseReasons,
  stages,
} from "../builds/build.ts";
import { checkPlaceSchema, culprits, disputeJudges, rulingSchema } from "../builds/dispute.ts";
import { gateResultSchema, mainFileSchema } from "../builds/merge.ts";
import { endSchema } from "../runs/end.ts";
import { commitSchema, findingsSchema } from "../runs/task-run.ts";

const name = z.string().min(1).max(256);
const round = z.int().min(1);
const count = z.int().min(0);
// Postgres keeps no text with a zero byte.
const text = z
  .string()
  .max(20_000)
  .overwrite((value) => value.replaceAll("\0", ""));
const reason = text.max(2000);
const attempt = { task: name, attempt: z.int().min(1) };

/** `respawn`: which life of the attempt it is about. */
const life = { ...attempt, respawn: count.optional() };

const commit = { commit: commitSchema, tree: commitSchema };
/** `offer`: the attempt's number for it. */
const offer = { ...attempt, respawn: count, offer: z.int().min(1) };

const mergeOutcomeSchema = z.discriminatedUnion("type", [
  z.object({ type: z.literal("clean"), ...commit }),
  /** Without paths, git could not merge at all. */
  z.object({ type: z.literal("conflict"), paths: z.array(z.string().max(1024)).max(1000) }),
]);

/** Files that `merge.ended` lists at most. */
export const maxFilesTold = 200;

/** What the world reports to a build, without the reports that carry documents. */
export const reportSchemas = {
  "order.pause": z.object({}),
  "order.resume": z.object({}),
  "order.cancel": z.object({}),
  "order.budget": z.object({ budgetMicroUsd: z.int(), resume: z.boolean().default(false) }),
  "order.dispute": z.object({ dispute: count, ...rulingSchema.shape }),
  /** The user lets the intent be locked. */
  "intent.released": z.object({}),
  /** `budgetMicroUsd`: of the build, before the stage began. */
  "stage.failed": z.object({
    stage: z.enum(stages),
    round,
    code: name,
    message: text,
    budgetMicroUsd: count.optional(),
  }),
  /** The first sign of life of an attempt; later ones are not reported. */
  "attempt.heard": z.object({ ...life, sandbox: sandboxIdSchema.nullish(), run: runIdSchema.nullish() }),
  /** What the attempt does, for those who watch. `saidAt`: by the sandbox's clock. */
  "attempt.progress": z.object({
    ...life,
    phase: name,
    status: name,
    text: reason.default(""),
    saidAt: count.optional(),
  }),
  "attempt.offered": z.object(life),
  /** `budgetMicroUsd`: of the build, when money was refused. `fix`: what mended the error that the task had before. */
  "attempt.ended": z.object({
    ...attempt,
    respawn: count,
    end: endSchema,
    budgetMicroUsd: count.optional(),
    fix: text.optional(),
  }),
  /** The build's repository exists. */
  "main.made": z.object(commit),
  /** The build's repository has a result of an attempt. */
  "candidate.offered": z.object({ ...offer, candidate: candidateIdSchema, ...commit }),
  /** The build's repository did not take a result. */
  "candidate.refused": z.object({ ...offer, findings: findingsSchema }),
  "merge.tested": z.object({ base: commitSchema, commit: commitSchema, outcome: mergeOutcomeSchema }),
  /** `trouble`: of an error that passes by itself and is not the candidate's. `task`, `gate`: for those who watch. */
  "gate.ended": z.object({
    ...gateResultSchema.shape,
    run: z.int().min(1),
    trouble: reason.optional(),
    task: name.optional(),
    gate: name.optional(),
  }),
  /**
   * `merged`: the candidate is part of main. `fix`: what it changed there, for those who meet the same error. `files`: the
   * first files that it changed, of `fileCount`, for those who show main themselves.
   */
  "merge.ended": z.object({
    candidate: candidateIdSchema,
    merged: z.boolean(),
    main: z.object(commit),
    fix: text.optional(),
    files: z.array(mainFileSchema).max(maxFilesTold).optional(),
    fileCount: count.optional(),
  }),
  "preview.ready": z.object({ address: name }),
  /** The build continues without a preview for now. */
  "preview.failed": z.object({ reason }),
  /** The remote's branch is at main's commit. */
  "remote.pushed": z.object({ branch: name, commit: name }),
  /** The build continues; the push is tried again. */
  "remote.failed": z.object({ reason }),
  "satisfaction.checked": z.object({
    round,
    unsatisfied: z.array(name).max(1000),
    evidence: z.array(evidenceSchema).max(1000).default([]),
  }),
  /** There was no money for the plan. */
  "remaining.refused": z.object({ round, budgetMicroUsd: count }),
  "remaining.unplannable": z.object({ round, message: text }),
  /** There was no money for the next time of a sandbox. `budgetMicroUsd`: of the build, before it was asked for. */
  "compute.refused": z.object({ budgetMicroUsd: count }),
};

/**
 * `round`: the user may send it back. `wrong`: null if that could not be decided. `because`: for the user; `advice`: the
 * sentence that agents may have.
 */
const disputeEnd = {
  dispute: z.int().min(1),
  round,
  wrong: z.enum(culprits).nullable(),
  because: reason,
  advice: reason.nullable(),
};
export const disputeSettledSchema = z.object(disputeEnd);

/** What clients see of the reports that carry documents: each document has its own route. */
const documentSchemas = {
  /** `problems`: their titles, where a diagnosis looked for them. */
  "intent.drafted": z.object({ criteria: count, workflows: count, problems: z.array(text).optional() }),
  "intent.edited": z.object({ criteria: count, workflows: count }),
  "intent.locked": z.object({ criteria: count, workflows: count, hash: name }),
  "plan.made": z.object({ tasks: count }),
  "remaining.planned": z.object({ round, tasks: count }),
  "sandbox.changed": z.object({ sandbox: sandboxIdSchema, status: name, reason: z.string().nullable() }),
  "checkpoint.made": z.object({ checkpoint: name, attempt: attemptIdSchema.nullable() }),
  /** `replaced`: the check was compiled anew. A wrong check that was not waits for the user. */
  "dispute.settled": z.object({ ...disputeEnd, replaced: z.boolean() }),
};

/** `level`: of error escalation, null on the first try. `pattern`: the known fix that is tried. */
const nextTry = {
  level: z.literal([0, 1, 2, 3, 4]).nullable(),
  pattern: z.string().nullable(),
  from: z.enum(["main", "last-attempt"]),
};

const error = { error: z.string(), message: z.string().optional() };

/** Of a candidate. */
const candidate = { candidate: z.string(), task: z.string() };
const rejectionSchema = z.object({
  ...candidate,
  gate: name,
  /** The gate could not be run on it. */
  broken: z.boolean(),
  /** The gate refused the same files before. */
  unchanged: z.boolean(),
  finding: z.string(),
});

/** What a build decides. */
export const decisionSchemas = {
  "build.created": z.object({ mode: z.enum(buildModes), hold: z.enum(holds), source: buildSourceSchema.optional() }),
  "stage.began": z.object({ stage: z.enum(stages), round }),
  "attempt.started": z.object({ ...attempt, ...nextTry }),
  "attempt.respawned": z.object({ ...attempt, respawn: count }),
  "attempt.paused": z.object(attempt),
  "attempt.resumed": z.object(attempt),
  /** `keepSandbox`: the task's next attempt may continue in it. */
  "attempt.closed": z.object({ ...attempt, keepSandbox: z.boolean() }),
  /** `failed`: null after an interruption. */
  "task.retried": z.object({
    task: name,
    failed: z.object({ level: nextTry.level, pattern: nextTry.pattern, ...error }).nullable(),
    interruption: endSchema.optional(),
    next: z.object(nextTry),
    notBeforeMs: z.number(),
  }),
  "task.merged": z.object({ task: name }),
  /** `main`: the commit that has what the task is for. */
  "task.satisfied": z.object({ task: name, main: name }),
  "task.failed": z.object({
    task: name,
    failure: z.discriminatedUnion("reason", [
      z.object({ reason: z.literal("exhausted"), ...error }),
      z.object({ reason: z.literal("dependency"), task: name }),
      z.object({ reason: z.literal("build-ended") }),
    ]),
  }),
  "budget.warned": z.object({ budgetMicroUsd: count }),
  "build.paused": z.object({ reason: z.enum(pauseReasons), budgetMicroUsd: count }),
  "build.resumed": z.object({}),
  "build.ended": z.object({ status: z.enum(buildStatuses), reason: z.enum(buildEndReasons) }),
  "satisfaction.asked": z.object({ round }),
  "remaining.asked": z.object({ round, unsatisfied: z.array(name).readonly() }),
  "gate.started": z.object({ ...candidate, gate: name, run: z.int().min(1) }),
  "merge.rejected": rejectionSchema,
  "merge.test_failed": rejectionSchema,
  "merge.conflict": z.object({ ...candidate, paths: z.array(z.string()).readonly() }),
  /** Work keeps failing the same step of a check and nothing else. `asks`: who decides whether the check is wrong. */
  "dispute.opened": z.object({
    ...candidate,
    dispute: z.int().min(1),
    at: checkPlaceSchema,
    asks: z.enum(disputeJudges),
  }),
  /** The failure is looked at again while those behind continue. */
  "merge.doubted": z.object({ ...candidate, gate: name }),
};

const schemas = {
  ...reportSchemas,
  ...documentSchemas,
  ...decisionSchemas,
  /** An event of another version, as it came. */
  unknown: z.object({ type: z.string(), data: z.record(z.string(), z.json()) }),
};

export type EventType = keyof typeof schemas;
/** What an event of a type says. */
export type EventData<T extends EventType> = z.output<(typeof schemas)[T]>;

/** Something that happened in a build, as clients see it. */
export type EventView = {
  [T in EventType]: {
    /** From 1, without gaps. */
    readonly sequence: number;
    readonly at: number;
    readonly type: T;
    readonly data: EventData<T>;
  };
}[EventType];

/** Why a task has failed, in short. */
export function taskFailureText(failure: EventData<"task.failed">["failure"]): string {
  switch (failure.reason) {
    case "exhausted":
      return failure.message ?? failure.error;
    case "dependency":
      return `waits for ${failure.task}, which failed`;
    case "build-ended":
      return "the build ended";
  }
}

/** Never fails for an event of another version: that is `unknown`. */
export const eventViewSchema = z
  .object({
    sequence: z.int().min(1),
    at: count,
    type: z.string().max(64),
    data: z.record(z.string(), z.json()),
  })
  .transform(({ sequence, at, type, data }): EventView => {
    const read = Object.hasOwn(schemas, type) ? schemas[type as EventType].safeParse(data) : undefined;
    const seen = read?.success ? { type, data: read.data } : { type: "unknown", data: { type, data } };
    return { sequence, at, ...seen } as EventView;
  });
