import { z } from "zod";
import { buildIdSchema } from "../base/ids.ts";
import { buildModes, buildSettingsSchema, buildStatuses, holds } from "../builds/build.ts";
import { requestTextSchema } from "../builds/intent.ts";
import { buildSecretsSchema } from "../sandboxes/network.ts";

/** What faces ask of the server over HTTP, below `/v1`. The answers are in api-views.ts. */
export const apiLimits = {
  maxBodyBytes: 1024 * 1024,
  maxBuildsPage: 100,
  maxEventsPage: 500,
  maxFilesPage: 1000,
  /** Of a file whose content is answered. */
  maxFileBytes: 1024 * 1024,
  /** Between two signs of life of a stream of events. */
  heartbeatMs: 15_000,
} as const;

/** The header that makes an order count once, however often it is sent. */
export const idempotencyHeader = "idempotency-key";
export const idempotencyKeySchema = z.string().regex(/^[A-Za-z0-9_-]{1,64}$/, "expected up to 64 letters and digits");

/** The repository that a feature is added to, or that is repaired. */
export const buildSourceSchema = z.union([
  z.strictObject({
    /** Of the server's machine. */
    directory: z
      .string()
      .max(4096)
      .regex(/^\/[^\0]*$/, "expected an absolute path"),
  }),
  z.strictObject({
    /** What git clones. Nothing that git takes for an option or a program. */
    repository: z
      .string()
      .max(2048)
      .regex(/^(https:\/\/|ssh:\/\/|git@)[^\s\0-][^\s\0]*$/, "expected an address such as https://example.com/app.git"),
  }),
]);
export type BuildSource = Readonly<z.output<typeof buildSourceSchema>>;

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
    /** What its sandboxes must be of. Left out: of whatever the server has. */
    provider: z.string().min(1).max(64).optional(),
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
export type StartBuildOutput = z.output<typeof startBuildSchema>;

export const setBudgetSchema = z.strictObject({
  budgetMicroUsd: settings.budgetMicroUsd.unwrap(),
  /** With the order to go on: sent after it, that could end a hold that the build has come to meanwhile. */
  resume: z.boolean().default(false),
});

export type SetBudget = z.output<typeof setBudgetSchema>;

export const buildOrders = ["pause", "resume", "cancel"] as const;
export type BuildOrderName = (typeof buildOrders)[number];

const queryCount = (most: number, otherwise: number) =>
  z
    .string()
    .regex(/^\d{1,9}$/, "expected a whole number")
    .transform(Number)
    .pipe(z.int().min(1).max(most))
    .default(otherwise);

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
export type BuildsQuery = z.output<typeof buildsQuerySchema>;

/** A number of an event; 0 is before the first. */
export const sequenceSchema = z
  .string()
  .regex(/^\d{1,15}$/, "expected the number of an event")
  .transform(Number);

const commitQuerySchema = z.string().regex(/^[0-9a-f]{40}$/, "expected the whole name of a commit");
const pathQuerySchema = z.string().min(1).max(1024);

/** Of main, at a commit that main has or had. */
export const filesQuerySchema = z.strictObject({
  /** Left out: main as it is now. */
  commit: commitQuerySchema.optional(),
  /** An earlier one: only what differs from it. */
  since: commitQuerySchema.optional(),
  /** Only files behind this path. */
  after: pathQuerySchema.optional(),
  limit: queryCount(apiLimits.maxFilesPage, 1000),
});
export type FilesQuery = z.output<typeof filesQuerySchema>;

export const fileQuerySchema = z.strictObject({ commit: commitQuerySchema.optional(), path: pathQuerySchema });
export type FileQuery = z.output<typeof fileQuerySchema>;

export const eventsQuerySchema = z.strictObject({
  after: sequenceSchema.default(0),
  limit: queryCount(apiLimits.maxEventsPage, 100),
});
