import type { BuildAction } from "./actions.ts";
import { pauseAll } from "./pause.ts";
import { type BuildState, isDone } from "./state.ts";

/** After this many consecutive rounds without a change a person has to look. */
const maxUnchangedRounds = 3;

/** After the last task: is the intent satisfied? What is not becomes the remaining plan. */
export function finish(state: BuildState): BuildAction[] {
  const { status, planning, attempts, tasks, progress } = state;
  if (status !== "running" || planning !== null || attempts.length > 0 || !tasks.every(isDone)) return [];
  const { step, round, unsatisfied, unchangedRounds } = progress;
  switch (step) {
    case "tasks":
      return [{ type: "check-satisfaction", round }];
    case "checking":
    case "planning":
    case "refused":
      return [];
    case "checked":
      if (unsatisfied.length === 0) return [{ type: "end-build", status: "succeeded", reason: "satisfied" }];
      if (unchangedRounds >= maxUnchangedRounds) return pauseAll(state, "stuck");
      return [{ type: "plan-remaining", round, unsatisfied }];
    case "unplannable":
      return [{ type: "end-build", status: "failed", reason: "unplannable" }];
  }
}
