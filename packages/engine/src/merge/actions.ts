import type { CandidateId, CheckPlace, DisputeJudge, Finding } from "@slipway/contract";
import { decision } from "../ports/reports.ts";
import type { NewEvent } from "../ports/store.ts";
import type { GateWork, MergeWork, OfCandidate } from "../ports/work.ts";
import type { Judged, Suspicion } from "./state.ts";

/**
 * What a turn decides about the merge queue, as plain data. What the queue asks for is an action that is its own work
 * item: it names everything that tells it from others, so that the same one, carried out again after a crash, finds
 * what the first did.
 */
export type MergeAction =
  | Extract<MergeWork, { type: "test-merge" | "merge" | "settle-dispute" }>
  | (GateWork & Judged)
  /** `overdue`: it counts as broken. Otherwise nobody needs it any more. */
  | { readonly type: "cancel-run"; readonly run: number; readonly overdue: boolean }
  | (OfCandidate & QueueMove);

type QueueMove =
  /** From now on it is tested on top of those ahead of it, and those behind on top of it. */
  | { readonly type: "line-up"; readonly place: number }
  /** What it depends on is no longer ahead of it. */
  | { readonly type: "leave-line" }
  /** Those behind go on without it while its failure is tested again. */
  | ({ readonly type: "set-aside" } & Suspicion)
  /** The failure was a flake. */
  | { readonly type: "clear" }
  /** Main, at this commit, has what the task is for: nothing has to be merged. */
  | { readonly type: "satisfy"; readonly main: string }
  /** Back to its attempt. `broken`: the gate could not run on it. `unchanged`: it had refused the same files before. */
  | {
      readonly type: "reject";
      readonly gate: string;
      /** The one check that it fails. Null: several, or something else. */
      readonly failedAt: CheckPlace | null;
      readonly tree: string;
      readonly broken: boolean;
      readonly unchanged: boolean;
      readonly findings: readonly Finding[];
    }
  /** Back to its attempt, with what main has at `paths` and what the candidate has. */
  | {
      readonly type: "return-conflict";
      readonly main: string;
      readonly commit: string;
      readonly paths: readonly string[];
    }
  /** It waits until it is decided whether the check that it and another one failed is wrong. */
  | {
      readonly type: "open-dispute";
      readonly dispute: number;
      readonly at: CheckPlace;
      readonly candidates: readonly CandidateId[];
      readonly asks: DisputeJudge;
    }
  /** The queue is cancelled. */
  | { readonly type: "discard" };

export type ActionOf<T extends MergeAction["type"]> = Extract<MergeAction, { type: T }>;

export function isWork(action: MergeAction): action is ActionOf<MergeWork["type"]> {
  return workTypes.has(action.type);
}

const workTypes: ReadonlySet<string> = new Set<MergeWork["type"]>([
  "test-merge",
  "gate-run",
  "cancel-run",
  "merge",
  "settle-dispute",
]);

/** The decision as those who follow the build read it. They are not told where candidates stand in the line. */
export function tellMerging(action: MergeAction): readonly NewEvent[] {
  switch (action.type) {
    case "gate-run": {
      const { candidate, task, gate, run } = action;
      return [decision("gate.started", { candidate, task, gate, run })];
    }
    case "reject": {
      const { candidate, task, gate, broken, unchanged } = action;
      const type = gate === "main-test" ? "merge.test_failed" : "merge.rejected";
      const finding = action.findings[0]?.text.slice(0, 500) ?? "";
      return [decision(type, { candidate, task, gate, broken, unchanged, finding })];
    }
    case "return-conflict": {
      const { candidate, task, paths } = action;
      return [decision("merge.conflict", { candidate, task, paths: paths.slice(0, 20) })];
    }
    case "set-aside": {
      const { candidate, task, gate } = action;
      return [decision("merge.doubted", { candidate, task, gate })];
    }
    case "open-dispute": {
      const { candidate, task, dispute, at, asks } = action;
      return [decision("dispute.opened", { candidate, task, dispute, at, asks })];
    }
    default:
      return [];
  }
}
