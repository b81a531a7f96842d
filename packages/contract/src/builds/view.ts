import { z } from "zod";
import { attemptIdSchema, buildIdSchema, candidateIdSchema, sandboxIdSchema } from "../base/ids.ts";
import {
  buildModes,
  buildSettingsSchema,
  buildSourceSchema,
  buildStatuses,
  candidateStatuses,
  evidenceSchema,
  holds,
  stages,
  taskStatuses,
} from "./build.ts";

/** How a build stands, as clients see it. Whoever reads it passes over fields that it does not know. */
const name = z.string().min(1).max(256);
const at = z.int().min(0);
const microUsd = z.int().min(0);
const count = z.int().min(0);

export const moneyViewSchema = z.object({
  budgetMicroUsd: microUsd,
  spentMicroUsd: microUsd,
  reservedMicroUsd: microUsd,
});

/** An attempt that has not ended. */
const attemptViewSchema = z.object({
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

const taskViewSchema = z.object({
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
const gateStates = ["open", "running", "passed", "failed", "broken"] as const;
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
      stage: z.enum(stages),
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
  criteria: z.array(evidenceSchema),
  /** Those that wait for the user: is the check wrong that work keeps failing? */
  disputes: z.array(z.object({ number: z.int().min(1), criterion: name })).default([]),
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
