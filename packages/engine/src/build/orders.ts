import { buildSettingsSchema, microUsdPerUsd, SlipwayError } from "@slipway/contract";
import { type BuildState, hasEnded } from "./state.ts";

/** What a user tells a build while it is there. */
export type BuildOrder =
  | { readonly type: "pause" }
  | { readonly type: "resume" }
  | { readonly type: "cancel" }
  | { readonly type: "set-budget"; readonly budgetMicroUsd: number; readonly resume?: boolean };

/** The state with the order in it; the next tick acts on it. Fails with `build_ended` or `invalid_budget`. */
export function order(state: BuildState, given: BuildOrder, nowMs: number): BuildState {
  // To cancel what is cancelled is what the user wants.
  if (given.type === "cancel" && state.status === "cancelled") return state;
  if (hasEnded(state)) throw new SlipwayError("build_ended", `the build has ended as ${state.status}`);
  switch (given.type) {
    case "pause":
      return wishing(state, "pause", nowMs);
    case "resume":
      return wishing(state, "run", nowMs);
    case "cancel":
      return wishing(state, "cancel", nowMs);
    case "set-budget": {
      const settings = { ...state.settings, budgetMicroUsd: readBudget(state, given.budgetMicroUsd) };
      return given.resume ? wishing({ ...state, settings }, "run", nowMs) : { ...state, settings };
    }
  }
}

/** A cancel is not taken back. */
function wishing(state: BuildState, kind: BuildState["wish"]["kind"], atMs: number): BuildState {
  return state.wish.kind === "cancel" ? state : { ...state, wish: { kind, atMs } };
}

function readBudget({ spentMicroUsd }: BuildState, budgetMicroUsd: number): number {
  const isValid = buildSettingsSchema.shape.budgetMicroUsd.safeParse(budgetMicroUsd).success;
  if (isValid && budgetMicroUsd > spentMicroUsd) return budgetMicroUsd;
  const message = `a budget of ${usd(budgetMicroUsd)} USD can not be set: ${usd(spentMicroUsd)} USD are spent`;
  throw new SlipwayError("invalid_budget", message);
}

function usd(microUsd: number): string {
  return (microUsd / microUsdPerUsd).toFixed(2);
}
