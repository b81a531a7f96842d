import type { WorkItem } from "../ports/work.ts";
import type { BuildAction } from "./actions.ts";
import type { AttemptIds } from "./records.ts";
import { type AttemptState, attemptName, type BuildState } from "./state.ts";

/** The work that the decided actions ask for. An attempt is asked to be as the state has it. */
export function itemsOf(
  actions: readonly BuildAction[],
  { before, after }: { readonly before: BuildState; readonly after: BuildState },
  ids: AttemptIds,
): WorkItem[] {
  const touched = answered(before, after);
  const items: WorkItem[] = [];
  for (const action of actions) {
    switch (action.type) {
      case "stage":
      case "check-satisfaction":
      case "plan-remaining":
        items.push(action);
        break;
      case "end-attempt": {
        const { type, task, keepSandbox } = action;
        const id = ids.get(attemptName(task, action.attempt));
        if (id !== undefined) items.push({ type, id, task, keepSandbox });
        break;
      }
      default:
        if ("attempt" in action) touched.add(attemptName(action.task, action.attempt));
    }
  }
  const attempts = after.attempts.filter(({ task, number }) => touched.has(attemptName(task, number)));
  return [...items, ...attempts.flatMap((attempt) => attemptItem(attempt, ids))];
}

/** Attempts that have to be told of an answer. */
function answered(before: BuildState, after: BuildState): Set<string> {
  const told = new Set(before.attempts.map(({ answer }) => answer));
  const open = after.attempts.filter(({ answer }) => answer !== null && !told.has(answer));
  return new Set(open.map(({ task, number }) => attemptName(task, number)));
}

/** Everything that should be under way. */
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
  const { task, number, respawns, level, pattern, from, answer } = attempt;
  const id = ids.get(attemptName(task, number));
  if (id === undefined) return [];
  const paused = attempt.pausedAtMs !== null;
  return [{ type: "attempt", id, task, number, respawn: respawns, paused, level, pattern, from, answer }];
}
