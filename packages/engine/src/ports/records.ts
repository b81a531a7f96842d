import {
  attemptIdSchema,
  buildIdSchema,
  buildModes,
  buildStatuses,
  candidateIdSchema,
  candidateStatuses,
  disputeJudges,
  disputeStatuses,
  gateResultSchema,
  runIdSchema,
  sandboxIdSchema,
  snapshotIdSchema,
  taskSchema,
  taskStatuses,
} from "@slipway/contract";
import { z } from "zod";

/**
 * What is kept of a build. Fields are queried; `details` belongs to the owner, as JSON. Times are milliseconds since
 * 1970, money is whole millionths of a US dollar, `null` means not yet or none.
 */
// Postgres cannot store text with a zero byte.
const hasNoZero = (value: string) => !value.includes("\0");
const name = z.string().min(1).max(256).refine(hasNoZero, "has a zero byte");
const text = z
  .string()
  .max(64 * 1024)
  .refine(hasNoZero, "has a zero byte");
const count = z.int().min(0);
const at = z.int().min(0);
const microUsd = z.int().min(0);
const score = z.number().min(0).max(100).nullable();
const details = z.record(z.string(), z.json()).default({});

export const newBuildSchema = z.strictObject({
  id: buildIdSchema,
  /** Whose build it is. */
  account: name,
  project: name,
  mode: z.enum(buildModes),
  request: text,
  /** Between the builds of one account: higher goes first. */
  priority: z.int().default(0),
  details,
});

export const buildRecordSchema = newBuildSchema.extend({
  status: z.enum(buildStatuses),
  /** Why it is paused, or how it ended. */
  reason: text.nullable(),
  /** How often its driver has changed the build. */
  turn: count,
  /** The last event that a turn has read. */
  appliedThrough: count,
  /** The last event of the build. */
  lastEvent: count,
  createdAt: at,
  updatedAt: at,
  endedAt: at.nullable(),
});

export const intentRecordSchema = z.strictObject({
  build: buildIdSchema,
  /** Of the locked intent. With a hash the record is final. */
  hash: name.nullable(),
  intent: z.json(),
});

/** The check of a criterion. Kept apart from the intent, whose readers may not read checks. Final. */
export const checkRecordSchema = z.strictObject({
  build: buildIdSchema,
  criterion: name,
  intentHash: name,
  check: z.json(),
});

/** Tasks as planned: the first plan, and one for each round that continues with what is not satisfied. Final. */
export const planRecordSchema = z.strictObject({
  build: buildIdSchema,
  round: z.int().min(1),
  intentHash: name,
  tasks: z.array(taskSchema),
});

/** The progress of a task. */
export const taskRecordSchema = z.strictObject({
  build: buildIdSchema,
  /** As the plan names it. */
  id: name,
  status: z.enum(taskStatuses),
  component: name,
  dependencies: z.array(name),
  /** Of error escalation: what the next attempt tries. Null: nothing to mend. */
  level: z.int().min(0).max(4).nullable(),
  /** How many there have been. */
  attempts: count,
  reason: text.nullable(),
  details,
});

export const attemptRecordSchema = z.strictObject({
  id: attemptIdSchema,
  build: buildIdSchema,
  task: name,
  status: name,
  reason: text.nullable(),
  sandbox: sandboxIdSchema.nullable(),
  run: runIdSchema.nullable(),
  phase: name.nullable(),
  score,
  startedAt: at,
  heartbeatAt: at.nullable(),
  endedAt: at.nullable(),
  details,
});

export const sandboxRecordSchema = z.strictObject({
  id: sandboxIdSchema,
  build: buildIdSchema,
  account: name,
  project: name,
  provider: name,
  /** As the provider names it. */
  providerId: name.nullable(),
  host: name.nullable(),
  config: z.json(),
  status: name,
  reason: text.nullable(),
  /** Those it has worked on, in order. */
  tasks: z.array(name),
  score,
  costMicroUsd: microUsd,
  createdAt: at,
  activeAt: at,
  endedAt: at.nullable(),
});

export const checkpointRecordSchema = z.strictObject({
  id: name,
  build: buildIdSchema,
  attempt: attemptIdSchema.nullable(),
  sandbox: sandboxIdSchema.nullable(),
  snapshot: snapshotIdSchema.nullable(),
  phase: name,
  createdAt: at,
  details,
});

export const candidateRecordSchema = z.strictObject({
  id: candidateIdSchema,
  build: buildIdSchema,
  task: name,
  attempt: attemptIdSchema,
  status: z.enum(candidateStatuses),
  reason: text.nullable(),
  commit: name,
  /** Its place in the merge queue. */
  position: count,
  createdAt: at,
  /** When it was merged or rejected. */
  endedAt: at.nullable(),
  details,
});

/** One run of one gate. Final. */
export const gateResultRecordSchema = z.strictObject({
  build: buildIdSchema,
  candidate: candidateIdSchema,
  gate: name,
  /** A gate runs again after a change of what is ahead in the queue. */
  round: count,
  ...gateResultSchema.shape,
  endedAt: at,
});

/** Whether a check is wrong that work kept failing, and what came of it. */
export const disputeRecordSchema = z.strictObject({
  build: buildIdSchema,
  /** From 1, per build. */
  number: z.int().min(1),
  task: name,
  criterion: name,
  /** Of the criterion, by index; and its step. */
  checkIndex: count,
  step: count,
  status: z.enum(disputeStatuses),
  by: z.enum(disputeJudges),
  because: text.nullable(),
  /** The wrong check, and the one in its place. Null: it was not replaced. */
  replacement: z.json(),
  openedAt: at,
  endedAt: at.nullable(),
});

/** A merged candidate: one per candidate, one per position. Final. */
export const mergeRecordSchema = z.strictObject({
  build: buildIdSchema,
  candidate: candidateIdSchema,
  task: name,
  /** Among the merges of the build, from 1. */
  position: z.int().min(1),
  commit: name,
  parent: name,
  mergedAt: at,
});

export const noteKinds = ["attempt", "remote"] as const;

export const workNoteSchema = z.strictObject({
  build: buildIdSchema,
  kind: z.enum(noteKinds),
  /** Unique among the build's notes of the kind. */
  name,
  note: z.json(),
});

export const agentActionRecordSchema = z.strictObject({
  build: buildIdSchema,
  attempt: attemptIdSchema.nullable(),
  run: runIdSchema,
  /** Of the run's event that reported it. */
  sequence: z.int().min(1),
  agent: name,
  action: name,
  ok: z.boolean().nullable(),
  at,
  details,
});

/** An error and its fix, learnt from a merged attempt. */
export const patternRecordSchema = z.strictObject({
  project: name,
  /** Of the error: the same for errors that differ only in names and numbers. */
  signature: name,
  error: text,
  fix: text,
  attempt: attemptIdSchema,
  learntAt: at,
});

export type NewBuild = Readonly<z.input<typeof newBuildSchema>>;
export type BuildRecord = Readonly<z.output<typeof buildRecordSchema>>;
export type IntentRecord = Readonly<z.output<typeof intentRecordSchema>>;
export type CheckRecord = Readonly<z.output<typeof checkRecordSchema>>;
export type PlanRecord = Readonly<z.output<typeof planRecordSchema>>;
export type TaskRecord = Readonly<z.output<typeof taskRecordSchema>>;
export type AttemptRecord = Readonly<z.output<typeof attemptRecordSchema>>;
export type SandboxRecord = Readonly<z.output<typeof sandboxRecordSchema>>;
export type CheckpointRecord = Readonly<z.output<typeof checkpointRecordSchema>>;
export type CandidateRecord = Readonly<z.output<typeof candidateRecordSchema>>;
export type GateResultRecord = Readonly<z.output<typeof gateResultRecordSchema>>;
export type DisputeRecord = Readonly<z.output<typeof disputeRecordSchema>>;
export type MergeRecord = Readonly<z.output<typeof mergeRecordSchema>>;
export type WorkNote = Readonly<z.output<typeof workNoteSchema>>;
export type AgentActionRecord = Readonly<z.output<typeof agentActionRecordSchema>>;
export type PatternRecord = Readonly<z.output<typeof patternRecordSchema>>;
