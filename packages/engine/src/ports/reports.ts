import {
  candidateIdSchema,
  commitSchema,
  compiledChecksSchema,
  endSchema,
  findingsSchema,
  gateResultSchema,
  lockedIntentSchema,
  mainFileSchema,
  openIntentSchema,
  planSchema,
  runIdSchema,
  sandboxIdSchema,
  taskSchema,
} from "@slipway/contract";
import { z } from "zod";
import { checkpointRecordSchema, sandboxRecordSchema } from "./records.ts";
import type { BuildEvent, NewEvent } from "./store.ts";
import { stages } from "./work.ts";

const name = z.string().min(1).max(256);
const round = z.int().min(1);
// Postgres keeps no text with a zero byte.
const text = z
  .string()
  .max(20_000)
  .overwrite((value) => value.replaceAll("\0", ""));
const attempt = { task: name, attempt: z.int().min(1) };

/** `respawn`: which life of the attempt it is about. */
const life = { ...attempt, respawn: z.int().min(0).optional() };

const commit = { commit: commitSchema, tree: commitSchema };
/** `offer`: the attempt's number for it. */
const offer = { ...attempt, respawn: z.int().min(0), offer: z.int().min(1) };

const mergeOutcomeSchema = z.discriminatedUnion("type", [
  z.strictObject({ type: z.literal("clean"), ...commit }),
  /** No paths: git could not merge them at all. */
  z.strictObject({ type: z.literal("conflict"), paths: z.array(z.string().max(1024)).max(1000) }),
]);

/** By a merge. The others are asked for. */
export const maxFilesTold = 200;

/** What the world tells a build, by the type of the event. */
const reportSchemas = {
  "order.pause": z.strictObject({}),
  "order.resume": z.strictObject({}),
  "order.cancel": z.strictObject({}),
  "order.budget": z.strictObject({ budgetMicroUsd: z.int(), resume: z.boolean().default(false) }),
  /** `start`: what there is before the build, as the pipeline found it. */
  "intent.drafted": z.strictObject({ open: openIntentSchema, start: z.json() }),
  "intent.edited": z.strictObject({ open: openIntentSchema }),
  /** The user has no more to say about it. */
  "intent.released": z.strictObject({}),
  "intent.locked": z.strictObject({ locked: lockedIntentSchema, checks: compiledChecksSchema }),
  "plan.made": z.strictObject({ plan: planSchema }),
  /** `budgetMicroUsd`: of the build, before the stage was begun. */
  "stage.failed": z.strictObject({
    stage: z.enum(stages),
    round,
    code: name,
    message: text,
    budgetMicroUsd: z.int().min(0).optional(),
  }),
  /** The first sign of life of an attempt; later ones are not reported. */
  "attempt.heard": z.strictObject({ ...life, sandbox: sandboxIdSchema.nullish(), run: runIdSchema.nullish() }),
  /** What it is at, for those who watch. */
  "attempt.progress": z.strictObject({
    ...life,
    phase: name,
    status: name,
    text: text.max(2000).default(""),
    /** By the sandbox's clock. */
    saidAt: z.int().min(0).optional(),
  }),
  "attempt.offered": z.strictObject(life),
  /** `budgetMicroUsd`: of the build, when money was refused. `fix`: what mended the error that the task had before. */
  "attempt.ended": z.strictObject({
    ...attempt,
    respawn: z.int().min(0),
    end: endSchema,
    budgetMicroUsd: z.int().min(0).optional(),
    fix: text.optional(),
  }),
  "sandbox.changed": z.strictObject({ sandbox: sandboxRecordSchema }),
  "checkpoint.made": z.strictObject({ checkpoint: checkpointRecordSchema }),
  /** The build's repository is there. */
  "main.made": z.strictObject(commit),
  /** A result of an attempt that is in the build's repository. */
  "candidate.offered": z.strictObject({ ...offer, candidate: candidateIdSchema, ...commit }),
  /** One that did not get there. */
  "candidate.refused": z.strictObject({ ...offer, findings: findingsSchema }),
  "merge.tested": z.strictObject({ base: commitSchema, commit: commitSchema, outcome: mergeOutcomeSchema }),
  "gate.ended": z.strictObject({
    ...gateResultSchema.shape,
    run: z.int().min(1),
    /** Of an error: what passes by itself, and is not the candidate's. */
    trouble: text.max(2000).optional(),
    /** For those who watch. */
    task: name.optional(),
    gate: name.optional(),
  }),
  /**
   * `merged`: the candidate is part of main. `fix`: what it has changed there, for those who meet the same error. `files`: the
   * first of those that it has changed, and `fileCount` how many they are, for those who show main themselves.
   */
  "merge.ended": z.strictObject({
    candidate: candidateIdSchema,
    merged: z.boolean(),
    main: z.strictObject(commit),
    fix: text.optional(),
    files: z.array(mainFileSchema).max(maxFilesTold).optional(),
    fileCount: z.int().min(0).optional(),
  }),
  /** Where main can be looked at. */
  "preview.ready": z.strictObject({ address: name }),
  /** Why it can not, for now. The build goes on. */
  "preview.failed": z.strictObject({ reason: text.max(2000) }),
  /** Main is at the remote, as this commit of the branch. */
  "remote.pushed": z.strictObject({ branch: name, commit: name }),
  /** Why it is not, for now. The build goes on. */
  "remote.failed": z.strictObject({ reason: text.max(2000) }),
  "satisfaction.checked": z.strictObject({
    round,
    unsatisfied: z.array(name).max(1000),
    /** Of criteria and workflows: what was seen. */
    evidence: z
      .array(z.strictObject({ id: name, satisfied: z.boolean(), text: text.max(2000) }))
      .max(1000)
      .default([]),
  }),
  "remaining.planned": z.strictObject({ round, tasks: z.array(taskSchema) }),
  /** There was no money for the plan. */
  "remaining.refused": z.strictObject({ round, budgetMicroUsd: z.int().min(0) }),
  "remaining.unplannable": z.strictObject({ round, message: text }),
};

export type ReportType = keyof typeof reportSchemas;
export type Report = {
  [T in ReportType]: { readonly type: T; readonly data: z.output<(typeof reportSchemas)[T]> };
}[ReportType];
export type ReportOf<T extends ReportType> = Extract<Report, { readonly type: T }>;
export type ReportInput<T extends ReportType> = z.input<(typeof reportSchemas)[T]>;

/** A report as it goes to the store. `key` names what it tells of: it is told once. */
export function report<T extends ReportType>(type: T, key: string | null, data: ReportInput<T>): NewEvent {
  return { type, key, data: JSON.parse(JSON.stringify(data)) as Record<string, z.core.util.JSONType> };
}

/** Undefined: it is none that a build acts on, or does not make sense. */
export function readReport({ type, data }: Pick<BuildEvent, "type" | "data">): Report | undefined {
  if (!(type in reportSchemas)) return undefined;
  const read = reportSchemas[type as ReportType].safeParse(data);
  return read.success ? ({ type, data: read.data } as Report) : undefined;
}
