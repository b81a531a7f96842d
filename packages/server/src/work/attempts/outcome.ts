import { attemptEnd } from "@slipway/agent-host";
import { hasCode, type RunEnd } from "@slipway/contract";
import { isFullDisk } from "../full-disk.ts";
import type { ToldOutcome } from "./reports.ts";

/** A full disk, or a repository of the build that is gone: that comes back, or its user cancels the build. */
export function mayPass(error: unknown): boolean {
  return isFullDisk(error) || hasCode(error, "commit_not_found");
}

export function refused(budgetMicroUsd: number): ToldOutcome {
  return { type: "out-of-budget", budgetMicroUsd };
}

export function interruptedBy(error: unknown): ToldOutcome {
  return { type: "interrupted", reason: error instanceof Error ? error.message : String(error) };
}

/** Whether something was merged is not for the run to say, nor did anybody here cancel it. */
export function outcomeOf(end: RunEnd, budgetMicroUsd: number): ToldOutcome {
  const outcome = attemptEnd(end);
  switch (outcome.type) {
    case "merged":
    case "cancelled":
      return { type: "failed", error: `the run has ended by itself (${outcome.type}), before its work was merged` };
    case "out-of-budget":
      return refused(budgetMicroUsd);
    default:
      return outcome;
  }
}
