import { buildSettingsSchema, microUsdPerUsd, SlipwayError } from "@slipway/contract";
import type { ReportOf } from "../../ports/reports.ts";
import { type BuildState, hasEnded } from "../state.ts";

/** What a user tells a build. */
export type BuildOrder = ReportOf<"order.pause" | "order.resume" | "order.cancel" | "order.budget">;

/** The state with the order in it; the next turn acts on it. Fails with `build_ended` or `invalid_budget`. */
export function order(state: BuildState, given: BuildOrder, nowMs: number): BuildState {
  // A second cancel is already fulfilled.
  if (given.type === "order.cancel" && state.status === "cancelled") return state;
  if (hasEnded(state)) throw new SlipwayError("build_ended", `the build has ended as ${state.status}`);
  switch (given.type) {
    case "order.pause":
      return wishing(state, "pause", nowMs);
    case "order.resume":
      return wishing(state, "run", nowMs);
    case "order.cancel":
      return wishing(state, "cancel", nowMs);
    case "order.budget": {
      const settings = { ...state.settings, budgetMicroUsd: readBudget(state, given.data.budgetMicroUsd) };
      return given.data.resume ? wishing({ ...state, settings }, "run", nowMs) : { ...state, settings };
    }
  }
}

/** A cancel is final. */
function wishing(state: BuildState, kind: BuildState["wish"]["kind"], atMs: number): BuildState {
  return state.wish.kind === "cancel" ? state : { ...state, wish: { kind, atMs } };
}

function readBudget({ spentMicroUsd }: BuildState, budgetMicroUsd: number): number {
  const isValid = buildSettingsSchema.shape.budgetMicroUsd.safeParse(budgetMicroUsd).success;
  if (isValid && budgetMicroUsd > spentMicroUsd) return budgetMicroUsd;
  const message = `a budget of ${usd(budgetMicroUsd)} USD cannot be set: ${usd(spentMicroUsd)} USD are spent`;
  throw new SlipwayError("invalid_budget", message);
}

function usd(microUsd: number): string {
  return (microUsd / microUsdPerUsd).toFixed(2);
}
