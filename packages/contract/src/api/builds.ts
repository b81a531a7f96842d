import { z } from "zod";
import { buildIdSchema } from "../base/ids.ts";
import {
  buildModes,
  buildSettingsSchema,
  buildSourceSchema,
  buildStatuses,
  holds,
  sandboxModes,
} from "../builds/build.ts";
import { requestTextSchema } from "../builds/intent.ts";
import { type BuildSummary, buildSummarySchema, moneyViewSchema } from "../builds/view.ts";
import { eventViewSchema } from "../events/build.ts";
import { buildSecretsSchema } from "../sandboxes/network.ts";
import { apiLimits, queryCount, sequenceSchema } from "./route.ts";

const count = z.int().min(0);

const settings = buildSettingsSchema.shape;

/** What is not said is as the server is set. */
const buildChoicesSchema = z.strictObject({
  slots: settings.slots.unwrap().optional(),
  partition: settings.partition.unwrap().optional(),
  timeoutMs: settings.timeoutMs.unwrap().optional(),
  budgetMicroUsd: settings.budgetMicroUsd.unwrap().optional(),
  respawn: settings.respawn.unwrap().optional(),
  checkpointMs: settings.checkpointMs.unwrap().optional(),
  priority: settings.priority.unwrap().optional(),
  agent: settings.agent.unwrap().optional(),
  workers: settings.workers.unwrap().optional(),
});

export const startBuildSchema = z
  .strictObject({
    /** Made by the caller: the same build again under its id is the one that is there. */
    id: buildIdSchema.optional(),
    request: requestTextSchema,
    mode: z.enum(buildModes).default("new"),
    source: buildSourceSchema.optional(),
    /** What fixes and decisions are remembered for. */
    project: z
      .string()
      .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/, "expected a name such as shop")
      .default("default"),
    settings: buildChoicesSchema.default({}),
    /** Where its sandboxes must be. Left out: where the server has them. */
    buildMode: z.enum(sandboxModes).optional(),
    hold: z.enum(holds).default("none"),
    /** Added outside of its sandboxes to what they ask of these hosts. No answer shows them again. */
    secrets: buildSecretsSchema.default([]),
  })
  .refine(({ mode, source }) => (mode === "new") === (source === undefined), {
    path: ["source"],
    error: ({ input }) =>
      (input as { mode: string }).mode === "new" ? "a new app has none" : "the repository to work on is missing",
  });
export type StartBuild = z.input<typeof startBuildSchema>;

export const setBudgetSchema = z.strictObject({
  budgetMicroUsd: settings.budgetMicroUsd.unwrap(),
  /** With the order to continue: sent after it, that could end a hold that the build has come to meanwhile. */
  resume: z.boolean().default(false),
});

export const buildsQuerySchema = z.strictObject({
  status: z
    .string()
    .max(200)
    .transform((text) => text.split(","))
    .pipe(z.array(z.enum(buildStatuses)))
    .optional(),
  project: z.string().min(1).max(64).optional(),
  /** Only builds that are older than this one. */
  before: buildIdSchema.optional(),
  limit: queryCount(apiLimits.maxBuildsPage, 20),
});

export const eventsQuerySchema = z.strictObject({
  after: sequenceSchema.default(0),
  limit: queryCount(apiLimits.maxEventsPage, 100),
});

export const buildsPageSchema = z.object({
  builds: z.array(buildSummarySchema),
  /** What `before` is for the next page. Null: this is the last one. */
  next: buildIdSchema.nullable(),
});

export const eventsPageSchema = z.object({
  events: z.array(eventViewSchema),
  /** What `after` is for the next page. */
  next: count,
  /** The build has ended, and these are its last events. */
  ended: z.boolean(),
});

/** How a stream of events ends when its build has. */
export type StreamEnd = Pick<BuildSummary, "status" | "reason">;

const costsSchema = z.array(
  z.object({
    /** Null: spent for none of them. */
    of: z.string().min(1).max(256).nullable(),
    spentMicroUsd: count,
    reservedMicroUsd: count,
    requests: count,
  }),
);

/** What a build has cost, by what it was spent for. Each adds up to the same. */
export const costsViewSchema = z.object({
  money: moneyViewSchema,
  by: z.object({
    task: costsSchema,
    attempt: costsSchema,
    agent: costsSchema,
    gate: costsSchema,
    provider: costsSchema,
  }),
});
export type CostsView = Readonly<z.output<typeof costsViewSchema>>;
