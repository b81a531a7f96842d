import {
  compiledChecksSchema,
  lockedIntentSchema,
  openIntentSchema,
  planSchema,
  runIdSchema,
  sandboxIdSchema,
  taskSchema,
} from "@slipway/contract";
import { z } from "zod";
import { checkpointRecordSchema, sandboxRecordSchema } from "../ports/records.ts";
import type { BuildEvent, NewEvent } from "../ports/store.ts";
import { stages } from "../ports/work.ts";

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

const outcomeSchema = z.discriminatedUnion("type", [
  /** `fix`: what mended the error that the task had before. */
  z.strictObject({ type: z.literal("merged"), fix: text.optional() }),
  z.strictObject({ type: z.literal("failed"), error: text }),
  z.strictObject({ type: z.literal("died") }),
  z.strictObject({ type: z.literal("interrupted") }),
  /** `budgetMicroUsd`: of the build, when it was refused. */
  z.strictObject({ type: z.literal("out-of-budget"), budgetMicroUsd: z.int().min(0).nullable().default(null) }),
]);

/** What the world tells a build, by the type of the event. */
const reportSchemas = {
  "order.pause": z.strictObject({}),
  "order.resume": z.strictObject({}),
  "order.cancel": z.strictObject({}),
  "order.budget": z.strictObject({ budgetMicroUsd: z.int() }),
  /** `start`: what there is before the build, as the pipeline found it. */
  "intent.drafted": z.strictObject({ open: openIntentSchema, start: z.json() }),
  "intent.edited": z.strictObject({ open: openIntentSchema }),
  /** The user has no more to say about it. */
  "intent.released": z.strictObject({}),
  "intent.locked": z.strictObject({ locked: lockedIntentSchema, checks: compiledChecksSchema }),
  "plan.made": z.strictObject({ plan: planSchema }),
  /** `budgetMicroUsd`: of the build, before the stage was begun. */
  "stage.failed": z.strictObject({
    ...{ stage: z.enum(stages), round, code: name, message: text },
    budgetMicroUsd: z.int().min(0).optional(),
  }),
  /** The first sign of life of an attempt; later ones are not reported. */
  "attempt.heard": z.strictObject({ ...life, sandbox: sandboxIdSchema.nullish(), run: runIdSchema.nullish() }),
  "attempt.offered": z.strictObject(life),
  "attempt.ended": z.strictObject({ ...attempt, respawn: z.int().min(0), outcome: outcomeSchema }),
  "sandbox.changed": z.strictObject({ sandbox: sandboxRecordSchema }),
  "checkpoint.made": z.strictObject({ checkpoint: checkpointRecordSchema }),
  "satisfaction.checked": z.strictObject({ round, unsatisfied: z.array(name).max(1000) }),
  "remaining.planned": z.strictObject({ round, tasks: z.array(taskSchema) }),
  /** There was no money for the plan. */
  "remaining.refused": z.strictObject({ round, budgetMicroUsd: z.int().min(0) }),
  "remaining.unplannable": z.strictObject({ round, message: text }),
};

export type ReportType = keyof typeof reportSchemas;
export type Report = {
  [T in ReportType]: { readonly type: T; readonly data: z.output<(typeof reportSchemas)[T]> };
}[ReportType];
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
