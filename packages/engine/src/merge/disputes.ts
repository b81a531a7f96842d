import type { CheckPlace } from "@slipway/contract";
import type { DisputeWork } from "../ports/work.ts";
import type { MergeAction } from "./actions.ts";
import type { View } from "./line.ts";
import { type Candidate, type Dispute, type MergeQueue, nameOf } from "./state.ts";

/**
 * What becomes of a candidate that fails one check and passes all else. Undefined: it is rejected. `held`: whether the
 * check is right is not decided yet, and more tries would only cost money.
 */
export function dispute(queue: MergeQueue, candidate: Candidate, at: CheckPlace): MergeAction | "held" | undefined {
  const last = queue.disputes.findLast((one) => isSameCheck(one.at, at));
  if (last !== undefined && isOpen(last)) return last.at.step === at.step ? "held" : undefined;
  if (last?.status === "app" && last.by === "user") return undefined;
  const before = queue.refusals.find(
    (one) =>
      one.task === candidate.task && one.tree !== candidate.tree && isSameCheck(one.at, at) && one.at.step === at.step,
  );
  if (before === undefined) return undefined;
  return {
    type: "open-dispute",
    ...nameOf(candidate),
    dispute: queue.disputes.length + 1,
    at,
    candidates: [before.candidate, candidate.id],
    asks: last === undefined ? "judge" : "user",
  };
}

/** What was said of the app when the check was last disputed. Null: nothing that agents may have. */
export function adviceOn({ disputes }: MergeQueue, at: CheckPlace): string | null {
  const last = disputes.findLast((one) => isSameCheck(one.at, at));
  return last?.status === "app" ? last.advice : null;
}

/** Asks for what nobody has begun yet. */
export function settleDisputes({ queue }: View): MergeAction[] {
  return queue.disputes.filter(({ status }) => status === "due").map((one) => workOn(queue, one));
}

/** After a restart. */
export function disputesUnderway(queue: MergeQueue): DisputeWork[] {
  return queue.disputes.filter(({ status }) => status === "underway").map((one) => workOn(queue, one));
}

function workOn({ main }: MergeQueue, { number, round, at, candidates, because, by }: Dispute): DisputeWork {
  const ruling = by === "user" && because !== null ? because : null;
  return { type: "settle-dispute", dispute: number, round, at, candidates, without: main.commit, ruling };
}

/** Nothing was found to be wrong yet. */
export function isOpen({ status }: Pick<Dispute, "status">): boolean {
  return status !== "app" && status !== "check";
}

export function isSameCheck(a: Pick<CheckPlace, "criterion" | "check">, b: typeof a): boolean {
  return a.criterion === b.criterion && a.check === b.check;
}
