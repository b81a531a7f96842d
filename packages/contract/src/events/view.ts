import { type TaskStatus, taskStatuses } from "../builds/build.ts";
import type { AttemptView, BuildView, TaskView } from "../builds/view.ts";
import { type EventView, taskFailureText } from "./build.ts";

/**
 * A build's view after one more event; an event that the view knows changes nothing. Covers the build's status, the tasks
 * that are done or failed, and what its attempts say until they are over. The rest of a view is read anew: money and
 * sandboxes have no events, those of a plan and an attempt's start do not carry what a view shows, and other reports have
 * their effect in a later turn.
 */
export function viewAfter(view: BuildView, event: EventView): BuildView {
  if (event.sequence <= view.lastEvent) return view;
  const attempts = attemptsAfter(view.attempts, event);
  return { ...view, ...statusAfter(view, event), ...tasksAfter(view, event), attempts, lastEvent: event.sequence };
}

/** For attempts that are open still, also after events that happened before. */
export function attemptsAfter(attempts: readonly AttemptView[], { type, data }: EventView): AttemptView[] {
  if (type !== "attempt.progress" && type !== "attempt.closed") return [...attempts];
  const is = ({ task, number }: AttemptView) => task === data.task && number === data.attempt;
  if (type === "attempt.closed") return attempts.filter((attempt) => !is(attempt));
  const { phase, text } = data;
  return attempts.map((attempt) => (is(attempt) ? { ...attempt, phase, doing: text === "" ? null : text } : attempt));
}

function statusAfter(view: BuildView, { type, data, at }: EventView): Partial<BuildView> {
  switch (type) {
    case "build.paused":
      return { status: "paused", reason: data.reason };
    case "build.resumed":
      return { status: view.planning === null ? "running" : "planning", reason: null };
    case "build.ended":
      return { status: data.status, reason: data.reason, endedAt: at };
    default:
      return {};
  }
}

function tasksAfter({ taskList }: BuildView, event: EventView): Partial<BuildView> {
  const done = doneTask(event);
  if (done === undefined) return {};
  const changed = taskList.map((task) => (task.id === done.id ? { ...task, refused: undefined, ...done } : task));
  return { taskList: changed, tasks: countTasks(changed) };
}

function doneTask({ type, data }: EventView): Pick<TaskView, "id" | "status" | "reason"> | undefined {
  switch (type) {
    case "task.merged":
      return { id: data.task, status: "merged", reason: null };
    case "task.satisfied":
      return { id: data.task, status: "satisfied", reason: "already on main" };
    case "task.failed":
      return { id: data.task, status: "failed", reason: taskFailureText(data.failure) };
    default:
      return undefined;
  }
}

export function countTasks(tasks: readonly { readonly status: TaskStatus }[]): Record<TaskStatus, number> {
  const counts = Object.fromEntries(taskStatuses.map((status) => [status, 0])) as Record<TaskStatus, number>;
  for (const { status } of tasks) counts[status]++;
  return counts;
}
