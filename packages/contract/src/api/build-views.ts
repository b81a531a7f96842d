import { z } from "zod";
import { contentHashSchema } from "../base/canonical.ts";
import { attemptIdSchema, buildIdSchema, candidateIdSchema, sandboxIdSchema } from "../base/ids.ts";
import {
  buildModes,
  buildSettingsSchema,
  buildStatuses,
  candidateStatuses,
  holds,
  partitions,
  taskStatuses,
} from "../builds/build.ts";
import { intentSchema } from "../builds/intent.ts";
import { gateResultSchema, mainFileSchema } from "../builds/merge.ts";
import { taskSchema } from "../builds/plan.ts";
import { usageSchema } from "../runs/models.ts";
import { buildSourceSchema } from "./builds.ts";

/** What the server answers. Whoever reads it passes over fields that it does not know. */
const name = z.string().min(1).max(256);
const at = z.int().min(0);
const microUsd = z.int().min(0);
const count = z.int().min(0);

const moneyViewSchema = z.object({
  budgetMicroUsd: microUsd,
  spentMicroUsd: microUsd,
  reservedMicroUsd: microUsd,
});

/** An attempt that has not ended. */
export const attemptViewSchema = z.object({
  id: attemptIdSchema,
  task: name,
  /** From 1, per task. */
  number: z.int().min(1),
  status: name,
  /** By its own account, once it has said so; else how far the build sees it. */
  phase: name.nullable(),
  /** What it last said that it does. */
  doing: z.string().nullable(),
  /** Of error escalation. Null: the first try. */
  level: z.int().min(0).max(4).nullable(),
  sandbox: sandboxIdSchema.nullable(),
  startedAt: at,
  heartbeatAt: at.nullable(),
});
export type AttemptView = Readonly<z.output<typeof attemptViewSchema>>;

/** A sandbox that has not ended. */
const sandboxViewSchema = z.object({
  id: sandboxIdSchema,
  provider: name,
  status: name,
  /** `attempt`, `gate`, `checker`, `install` or `preview`. */
  purpose: name,
  /** Those it has worked on, in order. */
  tasks: z.array(name),
  costMicroUsd: microUsd,
  createdAt: at,
  activeAt: at,
});
export type SandboxView = Readonly<z.output<typeof sandboxViewSchema>>;

export const taskViewSchema = z.object({
  id: name,
  status: z.enum(taskStatuses),
  component: name,
  attempts: count,
  level: z.int().min(0).max(4).nullable(),
  /** Why it has failed, what it waits to pass, or that it was on main already. */
  reason: z.string().nullable(),
  /** What came of its offers so far, while it is neither done nor failed. Left out: none has come back. */
  refused: z
    .object({
      /** Which one refused the last of them; `attempt`: none was made, the attempt has failed by itself. */
      gate: name,
      /** Why, in short. */
      finding: z.string().max(300),
      /** How many have come back. */
      times: z.int().min(1),
      /** In words. */
      next: z.string(),
    })
    .optional(),
});
export type TaskView = Readonly<z.output<typeof taskViewSchema>>;

/** `open`: it has not run yet, or has to run again. */
export const gateStates = ["open", "running", "passed", "failed", "broken"] as const;
export type GateState = (typeof gateStates)[number];

/** An attempt's result that is neither merged nor rejected. */
export const candidateViewSchema = z.object({
  id: candidateIdSchema,
  task: name,
  attempt: attemptIdSchema,
  status: z.enum(candidateStatuses),
  /** In the line of those that are tested on top of each other, from 1. Null: not in it. */
  place: z.int().min(1).nullable(),
  commit: name,
  /** Cheapest first. */
  gates: z.array(z.object({ name, state: z.enum(gateStates) })),
  /** What a gate of it waits to pass. */
  reason: z.string().nullable(),
  offeredAt: at,
});
export type CandidateView = Readonly<z.output<typeof candidateViewSchema>>;

/** What came of the last check of a criterion or a workflow. */
export const evidenceViewSchema = z.object({ id: name, satisfied: z.boolean(), text: z.string() });
export type EvidenceView = Readonly<z.output<typeof evidenceViewSchema>>;

/** One line of a list. */
export const buildSummarySchema = z.object({
  id: buildIdSchema,
  project: name,
  mode: z.enum(buildModes),
  request: z.string(),
  status: z.enum(buildStatuses),
  /** Why it is paused, or how it ended. */
  reason: z.string().nullable(),
  /** How many there are of each status. */
  tasks: z.record(z.enum(taskStatuses), count),
  money: moneyViewSchema,
  createdAt: at,
  updatedAt: at,
  endedAt: at.nullable(),
  /** The number of its last event. */
  lastEvent: count,
});
export type BuildSummary = Readonly<z.output<typeof buildSummarySchema>>;

export const buildViewSchema = buildSummarySchema.extend({
  settings: buildSettingsSchema,
  source: buildSourceSchema.nullable(),
  /** Null: there is a plan. At the step `held` the user has the next word. */
  planning: z
    .object({
      stage: z.enum(["draft", "lock", "plan"]),
      step: z.enum(["due", "underway", "held", "refused", "failed"]),
      hold: z.enum(holds),
    })
    .nullable(),
  taskList: z.array(taskViewSchema),
  attempts: z.array(attemptViewSchema),
  sandboxes: z.array(sandboxViewSchema),
  /** Those that wait to be merged, first in line first. */
  candidates: z.array(candidateViewSchema),
  /** Of the last check of the whole; none before there was one. */
  criteria: z.array(evidenceViewSchema),
  /** Main's commit. Null: there is no main yet. */
  main: name.nullable(),
  /** Where main's git repository is, on the server's machine. */
  repository: z.string().nullable(),
  /**
   * Where main is on top of the commit that the build began with, so that git merges it into the repository that this is from.
   * Null: it began with none, or there is nothing to merge yet.
   */
  result: z.object({ repository: z.string(), branch: name }).nullable().default(null),
  /** It is not there any more, or in another server's state directory: the build can only be cancelled from here. */
  repositoryMissing: z.boolean().default(false),
  /** Where main runs; whoever has the address may look. */
  preview: z.string().nullable(),
  /** Why the main of a build that has ended has no preview; null where it has one, or is closed. */
  nothingToShow: z.string().nullable().default(null),
  /** What the program that opened the pull request has said, which is its address. */
  pullRequest: z.string().nullable().default(null),
  /** Why main is not pushed, or its pull request not opened, since the build has ended. It is tried again. */
  remoteFailure: z.string().nullable().default(null),
});
export type BuildView = Readonly<z.output<typeof buildViewSchema>>;

export const buildsPageSchema = z.object({
  builds: z.array(buildSummarySchema),
  /** What `before` is for the next page. Null: this is the last one. */
  next: buildIdSchema.nullable(),
});
export type BuildsPage = Readonly<z.output<typeof buildsPageSchema>>;

export const intentViewSchema = z.object({
  status: z.enum(["open", "locked"]),
  intent: intentSchema,
  /** Of a locked intent. */
  hash: contentHashSchema.nullable(),
  lockedAtMs: at.nullable(),
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
  totals: z.object({ minutes: z.number(), usd: z.number() }),
});
export type PlanView = Readonly<z.output<typeof planViewSchema>>;

/** What the merge queue of a build does and has done. */
export const mergeQueueViewSchema = z.object({
  main: name.nullable(),
  /** How many candidates are tested on top of each other. */
  window: count,
  candidates: z.array(candidateViewSchema),
  /** In the order of main. */
  merges: z.array(z.object({ position: z.int().min(1), task: name, commit: name, mergedAt: at })),
  /** How the runs of each gate have ended. */
  gates: z.array(z.object({ name, passed: count, failed: count, broken: count })),
});
export type MergeQueueView = Readonly<z.output<typeof mergeQueueViewSchema>>;

/** A candidate's, or that of an attempt whose last commit is no candidate. */
export const branchIdSchema = z.union([candidateIdSchema, attemptIdSchema]);
export type BranchId = z.output<typeof branchIdSchema>;

/** `building`: its attempt is under way. `unoffered`: the attempt has ended before it was offered. */
const branchStatuses = [...candidateStatuses, "building", "unoffered"] as const;

/** An attempt's work, kept under a ref of its own until it is on main or a person discards it. */
export const branchViewSchema = z.object({
  id: branchIdSchema,
  task: name,
  attempt: attemptIdSchema,
  commit: name,
  /** What git fetches it by, from the build's repository. */
  ref: name,
  status: z.enum(branchStatuses),
  reason: z.string().nullable(),
  /** When it was offered; else when its attempt began. */
  at,
});
export type BranchView = Readonly<z.output<typeof branchViewSchema>>;

export const branchesViewSchema = z.object({
  /** On the server's machine. Null: there is none yet. */
  repository: z.string().nullable(),
  /** The oldest first. */
  branches: z.array(branchViewSchema),
});
export type BranchesView = Readonly<z.output<typeof branchesViewSchema>>;

/** What there is of a main that has no dev server. */
export const insteadViewSchema = z.object({
  reason: z.string(),
  /** To be cloned, on the server's machine. */
  repository: z.string(),
  branch: name,
  commit: name,
  /** The last verdict of each gate on what was merged last. */
  gates: z.array(z.object({ name, verdict: gateResultSchema.shape.verdict })),
});
export type InsteadView = Readonly<z.output<typeof insteadViewSchema>>;

/** Main as it runs. */
export const previewViewSchema = z.object({
  build: buildIdSchema,
  /** On the server's machine; whoever has it may look. Null: it is closed. */
  address: z.string().nullable(),
  /** Null: main has a dev server, or is closed. */
  instead: insteadViewSchema.nullable().default(null),
});
export type PreviewView = Readonly<z.output<typeof previewViewSchema>>;

/** What git names a file's bytes by: `git cat-file blob` in the build's repository gives them. */
const blob = name;

/** Files of main at a commit, or what of them differs from an earlier one. */
export const filesViewSchema = z.object({
  commit: name,
  /** In the order of their paths. Without an earlier commit all of them are `added`. */
  files: z.array(mainFileSchema.extend({ /** Null: it is deleted. */ blob: blob.nullable() })),
  /** What `after` is for the next page. Null: this is the last one. */
  next: z.string().nullable(),
});
export type FilesView = Readonly<z.output<typeof filesViewSchema>>;

export const fileViewSchema = z.object({
  commit: name,
  path: z.string(),
  /** The content of a link is where it leads. Nobody has followed it. */
  type: z.enum(["file", "executable", "link"]),
  bytes: count,
  blob,
  /** Null: it is no text, or too large. */
  content: z.string().nullable(),
});
export type FileView = Readonly<z.output<typeof fileViewSchema>>;

const costsSchema = z.array(
  z.object({
    /** Null: spent for none of them. */
    of: name.nullable(),
    spentMicroUsd: microUsd,
    reservedMicroUsd: microUsd,
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

/** Something that happened in a build. Documents are not in it: they are asked for where they are. */
export const eventViewSchema = z.object({
  /** From 1, without gaps. */
  sequence: z.int().min(1),
  at,
  type: z.string().max(64),
  data: z.record(z.string(), z.json()),
});
export type EventView = Readonly<z.output<typeof eventViewSchema>>;

export const eventsPageSchema = z.object({
  events: z.array(eventViewSchema),
  /** What `after` is for the next page. */
  next: count,
  /** The build has ended, and these are its last events. */
  ended: z.boolean(),
});
export type EventsPage = Readonly<z.output<typeof eventsPageSchema>>;

/** How a stream of events ends when its build has. */
export const streamEndSchema = z.object({ status: z.enum(buildStatuses), reason: z.string().nullable() });
export type StreamEnd = Readonly<z.output<typeof streamEndSchema>>;

/** What a provider of models has done since the server began. */
const modelHealthSchema = z.object({
  provider: z.string(),
  requests: count,
  inFlight: count,
  ends: z.object({ complete: count, truncated: count, cut: count, failed: count }),
  retries: count,
  usage: usageSchema,
  microUsd: count,
  lastErrorCode: z.string().optional(),
});
export type ModelHealth = Readonly<z.output<typeof modelHealthSchema>>;

export const healthSchema = z.object({
  status: z.literal("ok"),
  version: z.string(),
  pid: z.int(),
  models: z.array(modelHealthSchema).readonly().default([]),
});
export type Health = Readonly<z.output<typeof healthSchema>>;

export const errorAnswerSchema = z.object({
  error: z.object({ code: z.string(), message: z.string(), action: z.string() }),
});
