import { z } from "zod";
import { type ContentHash, contentHashSchema } from "../base/canonical.ts";
import { slugSchema } from "../base/ids.ts";
import { printable } from "../base/printable.ts";
import { gpuSchema } from "../sandboxes/price.ts";
import { type BuildMode, buildModes } from "./build.ts";

export const planLimits = {
  maxTasks: 300,
  maxDependencies: 50,
  minTaskMinutes: 1,
  /** A task that takes longer is to be split. */
  maxTaskMinutes: 8 * 60,
  maxTaskUsd: 50,
} as const;

/** The usual components; an app may have its own. */
export const usualComponents = ["frontend", "backend", "database", "api-integrations", "auth", "payments"] as const;

const plain = z.string().overwrite(printable).trim().min(1);

/** What a model guesses. Whether a guess makes sense is the plan stage's to say, so that it can be asked for again. */
const estimateSchema = z.strictObject({ minutes: z.number(), usd: z.number() });

export const taskSchema = z.strictObject({
  id: slugSchema,
  title: plain.max(200),
  description: plain.max(4000),
  component: slugSchema,
  features: z.array(slugSchema).min(1).max(20),
  /** Tasks that are merged before this one begins. */
  dependencies: z.array(slugSchema).max(planLimits.maxDependencies),
  /** Relative to the repository. */
  expectedFiles: z.array(z.string().min(1).max(300)).max(100),
  estimate: estimateSchema,
  /** Its attempts' sandboxes have this GPU. Gates and main have none. */
  gpu: gpuSchema.optional(),
  /** Criteria of the intent that the task serves. */
  criteria: z.array(slugSchema).max(60),
});

export const planDraftSchema = z.strictObject({ tasks: z.array(taskSchema) });

export const planSchema = planDraftSchema.extend({
  mode: z.enum(buildModes),
  intentHash: contentHashSchema,
});

export type Task = Readonly<z.output<typeof taskSchema>>;
export type PlanDraft = Readonly<z.output<typeof planDraftSchema>>;

export interface Plan {
  readonly mode: BuildMode;
  /** Of the intent that it is made for. */
  readonly intentHash: ContentHash;
  /** Each after those that it depends on. */
  readonly tasks: readonly Task[];
}
