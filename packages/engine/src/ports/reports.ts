import {
  checkSchema,
  compiledChecksSchema,
  type decisionSchemas,
  disputeSettledSchema,
  keptCheckSchema,
  lockedIntentSchema,
  openIntentSchema,
  planSchema,
  reportSchemas,
  taskSchema,
} from "@slipway/contract";
import { z } from "zod";
import { checkpointRecordSchema, sandboxRecordSchema } from "./records.ts";
import type { BuildEvent, NewEvent } from "./store.ts";

/** What the world tells a build, by the type of the event. */
const schemas = {
  ...reportSchemas,
  /** `start`: what there is before the build, as the pipeline found it. */
  "intent.drafted": z.object({ open: openIntentSchema, start: z.json() }),
  "intent.edited": z.object({ open: openIntentSchema }),
  "intent.locked": z.object({ locked: lockedIntentSchema, checks: compiledChecksSchema }),
  "plan.made": z.object({ plan: planSchema }),
  "remaining.planned": z.object({ round: z.int().min(1), tasks: z.array(taskSchema) }),
  "sandbox.changed": z.object({ sandbox: sandboxRecordSchema }),
  "checkpoint.made": z.object({ checkpoint: checkpointRecordSchema }),
  /** `replacement`: of a wrong check that was compiled anew. */
  "dispute.settled": disputeSettledSchema.extend({
    replacement: z.object({ before: keptCheckSchema, after: checkSchema }).nullable(),
  }),
};

export type ReportType = keyof typeof schemas;
export type Report = {
  [T in ReportType]: { readonly type: T; readonly data: z.output<(typeof schemas)[T]> };
}[ReportType];
export type ReportOf<T extends ReportType> = Extract<Report, { readonly type: T }>;
export type ReportInput<T extends ReportType> = z.input<(typeof schemas)[T]>;

/** A report as it goes to the store. `key` names what it tells of: it is told once. */
export function report<T extends ReportType>(type: T, key: string | null, data: ReportInput<T>): NewEvent {
  return { type, key, data: JSON.parse(JSON.stringify(data)) as Record<string, z.core.util.JSONType> };
}

/** A decision as it goes to the store, for those who follow the build. */
export function decision<T extends DecisionType>(type: T, data: DecisionInput<T>, key: string | null = null): NewEvent {
  return { type, key, data: JSON.parse(JSON.stringify(data)) };
}

export type DecisionType = keyof typeof decisionSchemas;
export type DecisionInput<T extends DecisionType> = z.input<(typeof decisionSchemas)[T]>;

/** Undefined: it is none that a build acts on, or does not make sense. */
export function readReport({ type, data }: Pick<BuildEvent, "type" | "data">): Report | undefined {
  if (!(type in schemas)) return undefined;
  const read = schemas[type as ReportType].safeParse(data);
  return read.success ? ({ type, data: read.data } as Report) : undefined;
}
