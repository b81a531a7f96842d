import { afterEnd, type EventView, endSchema, endText, isErrorCode } from "@slipway/contract";
import { formatDuration } from "../../../input/duration.ts";
import { toJson } from "../../../terminal/terminal.ts";
import { formatMoney } from "./money.ts";
import { levelText, oneLine, statusText } from "./words.ts";

type Data = EventView["data"];

/** What happened, in plain words. All of an event's text is said by users, models or sandboxes. */
export function eventText({ type, data }: Pick<EventView, "type" | "data">): string {
  return words[type]?.(data) ?? `${oneLine(type)} ${oneLine(toJson(data), 300)}`;
}

const words: Readonly<Record<string, (data: Data) => string>> = {
  "build.created": ({ mode }) => `the build begins (${text(mode)})`,
  "build.paused": ({ reason }) => statusText({ status: "paused", reason: text(reason) }),
  "build.resumed": () => "goes on",
  "build.ended": ({ status, reason }) => `ended: ${text(status)} (${text(reason)})`,
  "order.pause": () => "you ask for a pause",
  "order.resume": () => "you let it go on",
  "order.cancel": () => "you cancel it",
  "order.budget": ({ budgetMicroUsd }) => `you set its budget to ${formatMoney(amount(budgetMicroUsd))}`,
  "budget.warned": ({ budgetMicroUsd }) => `80 % of its budget of ${formatMoney(amount(budgetMicroUsd))} are spent`,
  "stage.began": ({ stage }) => stages[text(stage)] ?? `stage ${text(stage)}`,
  "stage.failed": ({ stage, code, message }) => `${text(stage)} failed: ${text(message)}${codeText(code)}`,
  "intent.drafted": (data) => `${diagnosisText(data["problems"])}the intent is drafted: ${intentText(data)}`,
  "intent.edited": (data) => `you edited the intent: ${intentText(data)}`,
  "intent.released": () => "you let the intent be locked",
  "intent.locked": (data) => `the intent is locked: ${intentText(data)}, ${text(data["hash"]).slice(0, 19)}`,
  "plan.made": ({ tasks }) => `planned: ${counted(tasks, "task")}`,
  "attempt.started": (data) => `${attempt(data)} begins${tries(data)}`,
  "attempt.heard": (data) => `${attempt(data)} works${data["sandbox"] ? ` in ${text(data["sandbox"])}` : ""}`,
  "attempt.progress": (data) => `${attempt(data)} ${progressText(data)}`,
  "attempt.offered": (data) => `${attempt(data)} wants to be merged`,
  "attempt.ended": (data) => `${attempt(data)} ${endWords(data["end"])}`,
  "attempt.closed": (data) => `${attempt(data)} is over${data["keepSandbox"] === true ? "; its sandbox is kept" : ""}`,
  "attempt.respawned": (data) => `${attempt(data)} goes on from its last checkpoint`,
  "attempt.paused": (data) => `${attempt(data)} is paused`,
  "attempt.resumed": (data) => `${attempt(data)} goes on`,
  "task.retried": ({ task, next, interruption }) =>
    `${text(task)} is tried again${tries(record(next))}${interruptionText(interruption)}`,
  "task.merged": ({ task }) => `${text(task)} is merged`,
  "task.satisfied": ({ task, main }) => `${text(task)} is satisfied: already on main, at ${short(main)}`,
  "task.failed": ({ task, failure }) => `${text(task)} failed: ${failureText(record(failure))}`,
  "sandbox.changed": ({ sandbox, status, reason }) =>
    `${text(sandbox)} is ${text(status)}${reason === null || reason === undefined ? "" : ` (${text(reason)})`}`,
  "checkpoint.made": ({ checkpoint }) => `checkpoint ${text(checkpoint)}`,
  "main.made": ({ commit }) => `main begins at ${short(commit)}`,
  "candidate.offered": (data) => `${attempt(data)} offers ${short(data["commit"])}`,
  "candidate.refused": (data) => `${attempt(data)} is refused: ${findingText(data)}`,
  "merge.tested": ({ commit, outcome }) =>
    `${short(commit)} ${record(outcome)["type"] === "conflict" ? "conflicts" : "goes together"} with what is ahead`,
  "gate.started": ({ task, gate, run }) => `${text(task)}: ${text(gate)} runs (${text(run)})`,
  "gate.ended": ({ run, task, gate, verdict, durationMs, trouble, findings }) => {
    const waits = trouble === undefined ? "" : `, and waits: ${text(trouble)}`;
    // What has passed, and is to be looked at by a person.
    const notes = verdict === "passed" && list(findings).length > 0 ? `. To look at: ${findingTexts(findings)}` : "";
    return `${text(task)}: ${text(gate)} (${text(run)}) ${verdictText(verdict)} after ${formatDuration(amount(durationMs))}${waits}${notes}`;
  },
  "merge.doubted": ({ task, gate }) => `${text(task)} fails ${text(gate)} on top of main, which is looked at again`,
  "merge.rejected": (data) => `${text(data["task"])} is rejected by ${rejectionText(data)}`,
  "merge.test_failed": (data) => `${text(data["task"])} breaks main: ${rejectionText(data)}`,
  "merge.conflict": ({ task, paths }) => `${text(task)} conflicts with main${pathsText(list(paths))}`,
  "merge.ended": ({ candidate, merged, main }) =>
    merged === true ? `main moves to ${short(record(main)["commit"])}` : `${text(candidate)} is not merged`,
  "preview.ready": ({ address }) => `the preview is at ${text(address)}`,
  "preview.failed": ({ reason }) => `the preview: ${text(reason)}`,
  "remote.pushed": ({ branch, commit }) => `main is pushed to ${text(branch)}, ${short(commit)}`,
  "remote.failed": ({ reason }) => `the remote: ${text(reason)}`,
  "satisfaction.asked": ({ round }) => `is the intent satisfied? (round ${text(round)})`,
  "satisfaction.checked": ({ unsatisfied }) => satisfactionText(list(unsatisfied)),
  "remaining.asked": () => "planning what is left",
  "remaining.planned": ({ tasks }) => `planned what is left: ${counted(tasks, "task")}`,
  "remaining.unplannable": ({ message }) => `what is left can not be planned: ${text(message)}`,
};

const stages: Readonly<Record<string, string>> = {
  draft: "drafting the intent",
  lock: "locking the intent",
  plan: "planning the tasks",
};

function intentText({ criteria, workflows }: Data): string {
  return `${counted(criteria, "criterion", "criteria")}, ${counted(workflows, "workflow")}`;
}

function attempt({ task, attempt: number }: Data): string {
  return `${text(task)}, attempt ${text(number)},`;
}

function tries({ level }: Data): string {
  return typeof level === "number" ? `: ${levelText(level)}` : "";
}

function interruptionText(told: unknown): string {
  const { success, data: end } = endSchema.safeParse(told);
  return success ? `: ${oneLine(endText(end))}` : "";
}

function endWords(told: unknown): string {
  const { success, data: end } = endSchema.safeParse(told);
  if (!success) return "is over";
  switch (afterEnd(end)) {
    case "done":
      return "has passed";
    case "retry":
      return `failed: ${oneLine(endText(end))}`;
    case "respawn":
      return "lost its sandbox";
    case "wait":
      return `was interrupted: ${oneLine(endText(end))}`;
    case "pay":
      return "found no money left";
  }
}

function progressText({ phase, status, text: said }: Data): string {
  const what = typeof said === "string" && said !== "" ? `: ${text(said)}` : "";
  return `${text(phase)} ${text(status)}${what}`;
}

function verdictText(verdict: Data[string] | undefined): string {
  return verdict === "passed" ? "passes" : verdict === "failed" ? "fails" : "breaks";
}

function findingTexts(findings: Data[string] | undefined): string {
  return list(findings)
    .map((finding) => text(record(finding)["text"]))
    .join(" ");
}

function findingText({ findings }: Data): string {
  return text(record(list(findings)[0])["text"]);
}

function rejectionText({ gate, broken, unchanged, finding }: Data): string {
  const what = typeof finding === "string" && finding !== "" ? `: ${text(finding)}` : "";
  const again = unchanged === true ? " again, since nothing has changed" : "";
  return `${text(gate)}${again}${broken === true ? ", which could not be run on it" : what}`;
}

function pathsText(paths: readonly unknown[]): string {
  const first = paths.slice(0, 3).map((path) => text(path as Data[string]));
  const more = paths.length > first.length ? ` and ${paths.length - first.length} more` : "";
  return first.length === 0 ? "" : ` at ${first.join(", ")}${more}`;
}

function short(commit: Data[string] | undefined): string {
  return text(commit).slice(0, 10);
}

/** What the repository's own build and tests have shown, where they were asked. */
function diagnosisText(problems: unknown): string {
  if (!Array.isArray(problems)) return "";
  const found = problems.map((title) => text(title)).join("; ");
  return `the diagnosis found ${found === "" ? "nothing wrong" : found}; `;
}

function failureText({ reason, error, message, task }: Data): string {
  if (reason === "dependency") return `it waits for ${text(task)}, which failed`;
  return reason === "build-ended" ? "the build ended" : text(message ?? error);
}

function satisfactionText(unsatisfied: readonly unknown[]): string {
  if (unsatisfied.length === 0) return "every criterion is satisfied";
  const first = unsatisfied.slice(0, 8).map((id) => text(id as Data[string]));
  return `not satisfied: ${first.join(", ")}${unsatisfied.length > first.length ? ", …" : ""}`;
}

function codeText(code: Data[string] | undefined): string {
  return isErrorCode(code) ? ` (${code})` : "";
}

function counted(value: Data[string] | undefined, one: string, many = `${one}s`): string {
  const count = amount(value);
  return `${count} ${count === 1 ? one : many}`;
}

function text(value: Data[string] | undefined): string {
  return typeof value === "string" || typeof value === "number" ? oneLine(String(value), 300) : "?";
}

function amount(value: Data[string] | undefined): number {
  return typeof value === "number" ? value : 0;
}

function record(value: unknown): Data {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Data) : {};
}

function list(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}
