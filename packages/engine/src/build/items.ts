import type { AttemptId } from "@slipway/contract";
import type { WorkItem } from "../ports/work.ts";
import type { BuildAction } from "./actions.ts";
import { attemptName } from "./intake.ts";
import type { AttemptState, BuildState } from "./state.ts";

export type AttemptIds = ReadonlyMap<string, AttemptId>;

/** What the decided actions ask of the world. An attempt is asked to be as the state has it. */
export function itemsOf(actions: readonly BuildAction[], after: BuildState, ids: AttemptIds): WorkItem[] {
  const touched = new Set<string>();
  const items: WorkItem[] = [];
  for (const action of actions) {
    switch (action.type) {
      case "start-attempt":
      case "respawn-attempt":
      case "pause-attempt":
      case "resume-attempt":
        touched.add(attemptName(action.task, action.attempt));
        break;
      case "end-attempt": {
        const id = ids.get(attemptName(action.task, action.attempt));
        if (id !== undefined)
          items.push({ type: "end-attempt", id, task: action.task, keepSandbox: action.keepSandbox });
        break;
      }
      case "begin-stage":
        items.push({ type: "stage", stage: action.stage, round: action.round });
        break;
      case "check-satisfaction":
      case "plan-remaining":
        items.push(action);
        break;
    }
  }
  const attempts = after.attempts.filter(({ task, number }) => touched.has(attemptName(task, number)));
  return [...items, ...attempts.flatMap((attempt) => attemptItem(attempt, ids))];
}

/** All that should be under way. */
export function allItems({ planning, progress, attempts }: BuildState, ids: AttemptIds): WorkItem[] {
  const { round, step, unsatisfied } = progress;
  return [
    ...(planning?.step === "underway"
      ? [{ type: "stage", stage: planning.stage, round: planning.round } as const]
      : []),
    ...(step === "checking" ? [{ type: "check-satisfaction", round } as const] : []),
    ...(step === "planning" ? [{ type: "plan-remaining", round, unsatisfied } as const] : []),
    ...attempts.flatMap((attempt) => attemptItem(attempt, ids)),
  ];
}

function attemptItem(attempt: AttemptState, ids: AttemptIds): WorkItem[] {
  const { task, number, respawns, level, pattern, from } = attempt;
  const id = ids.get(attemptName(task, number));
  if (id === undefined) return [];
  return [
    { type: "attempt", id, task, number, respawn: respawns, paused: attempt.pausedAtMs !== null, level, pattern, from },
  ];
}
