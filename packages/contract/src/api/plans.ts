import { z } from "zod";
import { contentHashSchema } from "../base/canonical.ts";
import { buildModes, partitions } from "../builds/build.ts";
import { intentSchema } from "../builds/intent.ts";
import { taskSchema } from "../builds/plan.ts";

const name = z.string().min(1).max(256);

export const intentViewSchema = z.object({
  status: z.enum(["open", "locked"]),
  intent: intentSchema,
  /** Of a locked intent. */
  hash: contentHashSchema.nullable(),
  lockedAtMs: z.int().min(0).nullable(),
});
export type IntentView = Readonly<z.output<typeof intentViewSchema>>;

export const planViewSchema = z.object({
  mode: z.enum(buildModes),
  intentHash: contentHashSchema,
  /** Of the last round: the first plan, or what was left to do after a check of the whole. */
  round: z.int().min(1),
  /** Of all rounds, each after those that it depends on. */
  tasks: z.array(taskSchema),
  partition: z.enum(partitions),
  parts: z.array(z.object({ name, tasks: z.array(name) })),
  /** The chain of tasks that takes longest. */
  criticalPath: z.object({ tasks: z.array(name), minutes: z.number() }),
  /** `usd`: of models; `computeUsd`: of sandboxes, by the prices of their provider. */
  totals: z.object({ minutes: z.number(), usd: z.number(), computeUsd: z.number() }),
});
export type PlanView = Readonly<z.output<typeof planViewSchema>>;
