import { z } from "zod";
import { SlipwayError } from "../base/errors.ts";
import { microUsdPerUsd } from "../runs/models.ts";
import { agentNameSchema } from "../runs/run.ts";

/** What a build makes: a new app, a feature of a repository that exists, or the repair of one. */
export const buildModes = ["new", "feature", "fix"] as const;
export type BuildMode = (typeof buildModes)[number];

/** Where a build's sandboxes are: on this machine, on Modal, or there with the coordinator in functions. */
export const sandboxModes = ["local", "modal", "hybrid"] as const;
export type SandboxMode = (typeof sandboxModes)[number];

/** The provider that serves a mode. */
export function providerOf(mode: SandboxMode): Exclude<SandboxMode, "hybrid"> {
  if (mode !== "hybrid") return mode;
  const why = "hybrid needs a coordinator that runs in functions, which this version does not have";
  throw new SlipwayError("mode_unavailable", `${why}; modal serves it with the coordinator in a server.`);
}

export const buildStatuses = ["planning", "running", "paused", "succeeded", "failed", "cancelled"] as const;
export type BuildStatus = (typeof buildStatuses)[number];

/** `satisfied`: there was nothing to merge, main has what the task is for. */
export const taskStatuses = ["pending", "assigned", "building", "verifying", "satisfied", "merged", "failed"] as const;
export type TaskStatus = (typeof taskStatuses)[number];

/** What depends on the task may begin. */
export function isOnMain(status: TaskStatus): boolean {
  return status === "merged" || status === "satisfied";
}

export const candidateStatuses = ["pending", "verifying", "approved", "merged", "rejected"] as const;
export type CandidateStatus = (typeof candidateStatuses)[number];

/** Why a build is paused. A `stuck` build goes on when a user says so, one at its budget when that is raised. */
export const pauseReasons = ["user", "budget", "stuck"] as const;
export type PauseReason = (typeof pauseReasons)[number];

export const buildEndReasons = ["satisfied", "cancelled", "timeout", "unplannable"] as const;
export type BuildEndReason = (typeof buildEndReasons)[number];

/** Stages before the first task, in their order. Each reports what it made, or `stage.failed`. */
export const stages = ["draft", "lock", "plan"] as const;
export type Stage = (typeof stages)[number];

/** Where a build waits for its user: before the lock of the intent, after the plan, at both, or nowhere. */
export const holds = ["none", "intent", "plan", "both"] as const;
export type Hold = (typeof holds)[number];

/** How the plan groups its tasks. */
export const partitions = ["phase", "feature", "component"] as const;
export type Partition = (typeof partitions)[number];

const hourMs = 3_600_000;

export const buildSettingsSchema = z.strictObject({
  /** Sandboxes that work at the same time. */
  slots: z.int().min(1).max(1000).default(5),
  /** What tasks are cut by, and shown in. */
  partition: z.enum(partitions).default("feature"),
  /** Of the time in which somebody drives the build and it is neither paused nor held. */
  timeoutMs: z
    .int()
    .min(60_000)
    .max(30 * 24 * hourMs)
    .default(24 * hourMs),
  budgetMicroUsd: z
    .int()
    .min(1)
    .max(1_000_000 * microUsdPerUsd)
    .default(100 * microUsdPerUsd),
  /** Whether a sandbox that died comes back from its last checkpoint. */
  respawn: z.boolean().default(true),
  checkpointMs: z.int().min(10_000).default(300_000),
  /** Between the builds of one user: higher goes first. */
  priority: z.int().min(-100).max(100).default(0),
  /** Who works on the tasks. */
  agent: agentNameSchema.default("builtin"),
  /** How many workers the lead of an attempt may hand parts of its task to; 0: it works alone. */
  workers: z.int().min(0).max(4).default(0),
});
export type BuildSettings = Readonly<z.output<typeof buildSettingsSchema>>;
export type BuildSettingsInput = z.input<typeof buildSettingsSchema>;

/** Who drives a build says so this often; a missed one lets another take over. */
export const coordinatorHeartbeatMs = 60_000;
/** How long a build stays its driver's without a turn: after a missed heartbeat another server takes over. */
export const defaultLeaseMs = 1.25 * coordinatorHeartbeatMs;

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

/** What the last check of a criterion or a workflow saw. */
export const evidenceSchema = z.object({
  id: z.string().min(1).max(256),
  satisfied: z.boolean(),
  text: z.string().max(2000),
});
