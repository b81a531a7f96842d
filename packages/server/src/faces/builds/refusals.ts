import { isOnMain, type TaskView } from "@slipway/contract";
import { type BuildState, briefly, type MergeQueue, mostTries, type TaskState } from "@slipway/engine";

/** What users see of a task that goes back and forth between gates and its agent. */
export function refusedOf(state: BuildState, queue: MergeQueue | null, id: string): TaskView["refused"] {
  const task = state.tasks.find((one) => one.id === id);
  if (task === undefined || isOnMain(task.status) || task.status === "failed") return undefined;
  const refused = task.refusal ?? ownFailure(task);
  return refused && { ...refused, next: nextOf(state, queue, task) };
}

function ownFailure({ failures }: TaskState): NonNullable<TaskState["refusal"]> | undefined {
  const last = failures.at(-1);
  return last && { gate: "attempt", finding: briefly(last.message ?? last.error), times: failures.length };
}

function nextOf({ status, attempts }: BuildState, queue: MergeQueue | null, task: TaskState): string {
  if (status === "paused") return "it goes on with the build";
  const candidate = queue?.candidates.find((one) => one.task === task.id);
  if (queue?.merging?.task === task.id) return "it is merged";
  if (candidate?.suspicion) return `${candidate.suspicion.gate} looks at it once more`;
  if (candidate !== undefined && candidate.place !== null) return "it waits for its turn in the merge queue";
  if (candidate !== undefined) return "its gates look at what was offered since";
  const which = `attempt ${task.failures.length + 1} of at most ${mostTries}`;
  if (attempts.some((attempt) => attempt.task === task.id)) return `its agent repairs it, ${which}`;
  return task.trouble === null
    ? `another attempt begins, ${which}`
    : `another attempt begins once this is over: ${briefly(task.trouble)}`;
}
