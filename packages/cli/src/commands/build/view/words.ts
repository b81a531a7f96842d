import { type BuildSummary, type BuildView, printable, type TaskStatus, taskStatuses } from "@slipway/contract";
import { quoted } from "../../../terminal/terminal.ts";

/** Text of users and models as one printable line. */
export function oneLine(text: string, most = Number.POSITIVE_INFINITY): string {
  const line = printable(text).replaceAll(/\s+/g, " ").trim();
  return line.length > most ? `${line.slice(0, Math.max(0, most - 1))}…` : line;
}

const pauseWords: Readonly<Record<string, string>> = {
  user: "until it is resumed",
  budget: "at its budget",
  stuck: "stuck: nothing has changed for three rounds",
};

/** `paused at its budget`, `failed (timeout)`, `running`. */
export function statusText({ status, reason }: Pick<BuildSummary, "status" | "reason">): string {
  if (reason === null || reason === status || reason === "satisfied") return status;
  return status === "paused"
    ? `paused ${pauseWords[reason] ?? `(${oneLine(reason)})`}`
    : `${status} (${oneLine(reason)})`;
}

/** The preview's address, or why there is none. Null: neither is known. */
export function previewText({ preview, nothingToShow }: Pick<BuildView, "preview" | "nothingToShow">): string | null {
  if (preview !== null) return oneLine(preview);
  return nothingToShow === null ? null : `nothing to show: ${oneLine(nothingToShow, 200)}`;
}

export function missingText({ repository }: Pick<BuildView, "repository">): string {
  return `Its repository is missing, ${oneLine(repository ?? "")}`;
}

/** How to merge the result into the repository that the build started from. */
export function mergeText({ repository, branch }: NonNullable<BuildView["result"]>): string {
  return `git fetch ${quoted(oneLine(repository))} ${quoted(oneLine(branch))} && git merge FETCH_HEAD`;
}

export const stageWords = {
  draft: "drafting the intent",
  lock: "locking the intent",
  plan: "planning the tasks",
} as const;

export function stageText(planning: NonNullable<BuildView["planning"]>): string {
  if (planning.step === "held") return "the intent is drafted and waits for you";
  return planning.step === "failed" ? `${stageWords[planning.stage]} failed` : stageWords[planning.stage];
}

/** `3 merged, 1 building, 5 pending` */
export function tasksText(tasks: Readonly<Record<TaskStatus, number>>): string {
  const shown = taskStatuses.toReversed().filter((status) => tasks[status] > 0);
  return shown.map((status) => `${tasks[status]} ${status}`).join(", ") || "none yet";
}

/** `3 of 5 merged, 1 satisfied` */
export function doneText(tasks: Readonly<Record<TaskStatus, number>>): string {
  const satisfied = tasks.satisfied === 0 ? "" : `, ${tasks.satisfied} satisfied`;
  return `${tasks.merged} of ${countTasks(tasks)} merged${satisfied}`;
}

export function countTasks(tasks: Readonly<Record<TaskStatus, number>>): number {
  return taskStatuses.reduce((sum, status) => sum + tasks[status], 0);
}

const levels = [
  "a known fix",
  "a direct fix",
  "deep analysis",
  "a rewrite of the component",
  "a rewrite of the feature",
];

export function levelText(level: number): string {
  return `level ${level}: ${levels[level] ?? "?"}`;
}

export function counted(count: number, one: string, many = `${one}s`): string {
  return `${count} ${count === 1 ? one : many}`;
}
