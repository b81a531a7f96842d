import { z } from "zod";
import { findingsSchema } from "../runs/task-run.ts";
import { checkPlaceSchema } from "./dispute.ts";

/** A file by which two commits of main differ. */
export const mainFileSchema = z.object({
  path: z.string().min(1).max(1024),
  change: z.enum(["added", "changed", "deleted", "renamed"]),
  /** Where it was before, when it was renamed. */
  from: z.string().max(1024).optional(),
});
export type MainFile = Readonly<z.output<typeof mainFileSchema>>;

/** What came of a gate's run. `error`: the run itself broke, and says nothing about what it looked at. */
export const gateVerdicts = ["passed", "failed", "error"] as const;
export type GateVerdict = (typeof gateVerdicts)[number];

/** From 0 to 100. Null: the gate does not measure. */
const score = z.number().min(0).max(100).nullable().default(null);
/** Of a criterion: the check that failed and its step, by index. */
const failedAt = checkPlaceSchema.omit({ criterion: true }).nullable().default(null);
const shortName = z.string().min(1).max(256);

/** What one run of a gate has found. */
export const gateResultSchema = z.strictObject({
  verdict: z.enum(gateVerdicts),
  score,
  /** What it looked at, one by one. */
  parts: z
    .array(z.strictObject({ name: shortName, verdict: z.enum(gateVerdicts), score, failedAt }))
    .max(1000)
    .default([]),
  /** What speaks against the candidate; where it has passed, what its user may want to look at. */
  findings: findingsSchema,
  /** Files to look at, by the key that they are kept under: screenshots, reports. */
  artefacts: z
    .array(z.strictObject({ name: shortName, kind: shortName, key: shortName }))
    .max(1000)
    .default([]),
  durationMs: z.int().min(0),
  costMicroUsd: z.int().min(0).default(0),
});
export type GateResult = Readonly<z.output<typeof gateResultSchema>>;

/**
 * What a gate looks at: the candidate's own files; how they go together with main and with every other candidate; or
 * what main would be with the candidate and those ahead of it.
 */
export const gateTargets = ["candidate", "others", "main"] as const;
export type GateTarget = (typeof gateTargets)[number];

/** A check that a candidate must pass to be merged. */
export interface Gate {
  readonly name: string;
  readonly on: GateTarget;
  /** Lower goes first; gates of the same rank run at the same time. */
  readonly rank: number;
  /** A run that takes longer has broken. */
  readonly limitMs: number;
}

const minuteMs = 60_000;

/** Gates of every build. More of them may be added to a queue at any time. */
export const usualGates: readonly Gate[] = [
  { name: "compatibility", on: "others", rank: 0, limitMs: minuteMs },
  { name: "build", on: "candidate", rank: 1, limitMs: 20 * minuteMs },
  { name: "tests", on: "candidate", rank: 2, limitMs: 30 * minuteMs },
  { name: "intent", on: "candidate", rank: 3, limitMs: 30 * minuteMs },
  { name: "main-test", on: "main", rank: 4, limitMs: 60 * minuteMs },
];
