import { afterEnd } from "@slipway/contract";
import type { BuildAction } from "./actions.ts";
import { pauseAll } from "./pause.ts";
import type { BuildState, Outcome } from "./state.ts";

const warnAtPercent = 80;

/** Warns once per budget, and pauses at its end. */
export function watchMoney(state: BuildState): BuildAction[] {
  const { spentMicroUsd, warnedBudgetMicroUsd } = state;
  const { budgetMicroUsd } = state.settings;
  const isNearEnd = spentMicroUsd * 100 >= budgetMicroUsd * warnAtPercent;
  const warning: BuildAction[] =
    isNearEnd && warnedBudgetMicroUsd !== budgetMicroUsd ? [{ type: "warn-budget", budgetMicroUsd }] : [];
  return state.status === "running" && isOutOfMoney(state) ? [...warning, ...pauseAll(state, "budget")] : warning;
}

/** Or as good as out: there is too little left for what an attempt needs next. */
function isOutOfMoney(state: BuildState): boolean {
  const { spentMicroUsd, settings, planning, progress, attempts, refusedMicroUsd } = state;
  const refused = attempts.some(({ pausedAtMs, outcome }) => pausedAtMs === null && isRefused(outcome, settings));
  return (
    refused ||
    (refusedMicroUsd !== null && refusedMicroUsd >= settings.budgetMicroUsd) ||
    planning?.step === "refused" ||
    progress.step === "refused" ||
    spentMicroUsd >= settings.budgetMicroUsd
  );
}

/** A refusal counts until the budget is higher than it was then, or a pause for it has ended. */
export function isRefused(outcome: Outcome | null, { budgetMicroUsd }: BuildState["settings"]): boolean {
  if (outcome === null || afterEnd(outcome) !== "pay") return false;
  return (outcome.budgetMicroUsd ?? budgetMicroUsd) >= budgetMicroUsd;
}
