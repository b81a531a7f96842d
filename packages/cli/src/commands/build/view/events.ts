import {
  afterEnd,
  type EventData,
  type EventType,
  type EventView,
  endText,
  isErrorCode,
  taskFailureText,
} from "@slipway/contract";
import { formatDuration } from "../../../input/duration.ts";
import { toJson } from "../../../terminal/terminal.ts";
import { formatMoney } from "./money.ts";
import { counted, levelText, oneLine, stageWords, statusText } from "./words.ts";

/** An event's type and data. */
export type Told = { [T in EventType]: { readonly type: T; readonly data: EventData<T> } }[EventType];

/** Describes an event in plain words. Users, models and sandboxes write its texts, so the result is made safe to print. */
export function eventText({ type, data }: Told | EventView): string {
  return oneLine((words[type] as (data: EventData<EventType>) => string)(data));
}

const words: { readonly [T in EventType]: (data: EventData<T>) => string } = {
  "build.created": ({ mode }) => `the build begins (${mode})`,
  "build.paused": ({ reason }) => statusText({ status: "paused", reason }),
  "build.resumed": () => "resumed",
  "build.ended": ({ status, reason }) => `ended: ${status} (${reason})`,
  "order.pause": () => "you paused it",
  "order.resume": () => "you resumed it",
  "order.cancel": () => "you cancelled it",
  "order.budget": ({ budgetMicroUsd }) => `you set its budget to ${formatMoney(budgetMicroUsd)}`,
  "budget.warned": ({ budgetMicroUsd }) => `80 % of its budget of ${formatMoney(budgetMicroUsd)} is spent`,
  "stage.began": ({ stage }) => stageWords[stage],
  "stage.failed": ({ stage, code, message }) =>
    `${stage} failed: ${brief(message)}${isErrorCode(code) ? ` (${code})` : ""}`,
  "intent.drafted": (data) => `${diagnosisText(data)}the intent is drafted: ${intentText(data)}`,
  "intent.edited": (data) => `you edited the intent: ${intentText(data)}`,
  "intent.released": () => "you accepted the intent",
  "intent.locked": (data) => `the intent is locked: ${intentText(data)}, ${data.hash.slice(0, 19)}`,
  "plan.made": ({ tasks }) => `planned: ${counted(tasks, "task")}`,
  "attempt.started": (data) => `${attempt(data)} begins${levelOf(data)}`,
  "attempt.heard": (data) => `${attempt(data)} works${data.sandbox ? ` in ${data.sandbox}` : ""}`,
  "attempt.progress": (data) => `${attempt(data)} ${data.phase} ${data.status}${after(data.text)}`,
  "attempt.offered": (data) => `${attempt(data)} asks to be merged`,
  "attempt.ended": (data) => `${attempt(data)} ${endWords(data)}`,
  "attempt.closed": (data) => `${attempt(data)} has ended${data.keepSandbox ? "; its sandbox is kept" : ""}`,
  "attempt.respawned": (data) => `${attempt(data)} resumes from its last checkpoint`,
  "attempt.paused": (data) => `${attempt(data)} is paused`,
  "attempt.resumed": (data) => `${attempt(data)} is resumed`,
  "task.retried": ({ task, next, interruption }) =>
    `${task} is retried${levelOf(next)}${after(interruption && endText(interruption))}`,
  "task.merged": ({ task }) => `${task} is merged`,
  "task.satisfied": ({ task, main }) => `${task} is satisfied: already on main, at ${short(main)}`,
  "task.failed": ({ task, failure }) => `${task} failed: ${brief(taskFailureText(failure))}`,
  "sandbox.changed": ({ sandbox, status, reason }) =>
    `${sandbox} is ${status}${reason === null ? "" : ` (${brief(reason)})`}`,
  "checkpoint.made": ({ checkpoint }) => `checkpoint ${checkpoint}`,
  "main.made": ({ commit }) => `main begins at ${short(commit)}`,
  "candidate.offered": (data) => `${attempt(data)} offers ${short(data.commit)}`,
  "candidate.refused": (data) => `${attempt(data)} is refused${after(data.findings[0]?.text)}`,
  "merge.tested": ({ commit, outcome }) =>
    `${short(commit)} ${outcome.type === "conflict" ? "conflicts" : "merges"} with what is ahead of it`,
  "gate.started": ({ task, gate, run }) => `${task}: ${gate} runs (${run})`,
  "gate.ended": ({ run, task, gate, verdict, durationMs, trouble, findings }) => {
    const waits = trouble === undefined ? "" : `, and waits: ${brief(trouble)}`;
    // The findings of a passed gate are notes for a person.
    const isNoted = verdict === "passed" && findings.length > 0;
    const notes = isNoted ? `. To look at: ${findings.map(({ text }) => brief(text)).join(" ")}` : "";
    return `${task ?? "?"}: ${gate ?? "?"} (${run}) ${verdictWords[verdict]} after ${formatDuration(durationMs)}${waits}${notes}`;
  },
  "merge.doubted": ({ task, gate }) => `${task} fails ${gate} on top of main; main is checked again`,
  "merge.rejected": (data) => `${data.task} is rejected by ${rejectionText(data)}`,
  "merge.test_failed": (data) => `${data.task} breaks main: ${rejectionText(data)}`,
  "merge.conflict": ({ task, paths }) => `${task} conflicts with main${pathsText(paths)}`,
  "merge.ended": ({ candidate, merged, main }) =>
    merged ? `main moves to ${short(main.commit)}` : `${candidate} is not merged`,
  "dispute.opened": ({ dispute, task, at, asks }) =>
    `${task} keeps failing one check of ${at.criterion}; ${asks === "user" ? "you decide" : "a model decides"} whether the check is wrong (dispute ${dispute}${asks === "user" ? seeDisputes : ""})`,
  "dispute.settled": (data) => disputeText(data),
  "order.dispute": ({ dispute, wrong, because }) =>
    `you decided that the ${wrong} is wrong (dispute ${dispute})${after(because)}`,
  "preview.ready": ({ address }) => `the preview is at ${address}`,
  "preview.failed": ({ reason }) => `the preview: ${brief(reason)}`,
  "remote.pushed": ({ branch, commit }) => `main is pushed to ${branch}, ${short(commit)}`,
  "remote.failed": ({ reason }) => `the remote: ${brief(reason)}`,
  "satisfaction.asked": ({ round }) => `is the intent satisfied? (round ${round})`,
  "satisfaction.checked": ({ unsatisfied }) =>
    unsatisfied.length === 0 ? "every criterion is satisfied" : `not satisfied: ${firstOf(unsatisfied, 8, ", …")}`,
  "remaining.asked": () => "planning the remaining work",
  "remaining.planned": ({ tasks }) => `planned the remaining work: ${counted(tasks, "task")}`,
  "remaining.refused": () => "no budget is left to plan the remaining work",
  "compute.refused": () => "no budget is left for a sandbox",
  "remaining.unplannable": ({ message }) => `the remaining work cannot be planned: ${brief(message)}`,
  unknown: ({ type, data }) => `${type} ${brief(toJson(data))}`,
};

const verdictWords = { passed: "passes", failed: "fails", error: "breaks" } as const;

function brief(text: string): string {
  return oneLine(text, 300);
}

function after(text: string | undefined): string {
  return text === undefined || text === "" ? "" : `: ${brief(text)}`;
}

function intentText({ criteria, workflows }: EventData<"intent.edited">): string {
  return `${counted(criteria, "criterion", "criteria")}, ${counted(workflows, "workflow")}`;
}

function attempt({ task, attempt: number }: EventData<"attempt.paused">): string {
  return `${task}, attempt ${number},`;
}

function levelOf({ level }: Pick<EventData<"attempt.started">, "level">): string {
  return level === null ? "" : `: ${levelText(level)}`;
}

function endWords({ end }: EventData<"attempt.ended">): string {
  switch (afterEnd(end)) {
    case "done":
      return "has passed";
    case "retry":
      return `failed: ${brief(endText(end))}`;
    case "respawn":
      return "lost its sandbox";
    case "wait":
      return `was interrupted: ${brief(endText(end))}`;
    case "pay":
      return "found no budget left";
  }
}

function rejectionText({ gate, broken, unchanged, finding }: EventData<"merge.rejected">): string {
  const again = unchanged ? " again, since nothing has changed" : "";
  return `${gate}${again}${broken ? ", which could not be run on it" : after(finding)}`;
}

function disputeText({ dispute, wrong, because, replaced }: EventData<"dispute.settled">): string {
  const what = {
    app: "the app is wrong",
    check: replaced ? "the check was wrong and is compiled anew" : "the check is wrong, and you decide what follows",
    none: "you decide whether the check is wrong",
  }[wrong ?? "none"];
  const isForUser = wrong !== "app" && !replaced;
  return `${what} (dispute ${dispute}${isForUser ? seeDisputes : ""})${after(because)}`;
}

const seeDisputes = ", see slipway disputes";

function pathsText(paths: readonly string[]): string {
  return paths.length === 0 ? "" : ` at ${firstOf(paths, 3, ` and ${paths.length - 3} more`)}`;
}

function firstOf(all: readonly string[], most: number, more: string): string {
  const first = all.slice(0, most).map(brief);
  return `${first.join(", ")}${all.length > most ? more : ""}`;
}

function short(commit: string): string {
  return commit.slice(0, 10);
}

/** What a diagnosis found by the repository's own build and tests; empty without a diagnosis. */
function diagnosisText({ problems }: EventData<"intent.drafted">): string {
  if (problems === undefined) return "";
  return `the diagnosis found ${problems.map(brief).join("; ") || "nothing wrong"}; `;
}
