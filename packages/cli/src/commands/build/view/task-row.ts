import {
  type AttemptView,
  type BuildView,
  type CandidateView,
  type GateState,
  type Intent,
  isOnMain,
  type PlanView,
  type TaskView,
} from "@slipway/contract";
import type { Colour } from "../../../terminal/terminal.ts";
import { levelText, oneLine } from "./words.ts";

/** What the screen knows of a build. */
export interface Looked {
  readonly view: BuildView;
  readonly intent: Intent | null;
  readonly plan: PlanView | null;
}

export interface TaskRow {
  readonly mark: string;
  readonly colour: Colour;
  readonly text: string;
  /** How long its attempt has been running. Null: it has none. */
  readonly forMs: number | null;
}

export function isUnderway({ status }: TaskView): boolean {
  return status === "assigned" || status === "building" || status === "verifying";
}

/** The state of a task in one line. */
export function describeTask({ view, plan }: Looked, task: TaskView, nowMs: number): TaskRow {
  if (task.status === "merged") return { mark: "✓", colour: "green", text: "merged", forMs: null };
  if (task.status === "satisfied") {
    return { mark: "✓", colour: "green", text: `satisfied: ${oneLine(task.reason ?? "")}`, forMs: null };
  }
  if (task.status === "failed") {
    return { mark: "✗", colour: "red", text: `failed: ${oneLine(task.reason ?? "?")}`, forMs: null };
  }
  const attempt = view.attempts.find((one) => one.task === task.id);
  const candidate = view.candidates.find((one) => one.task === task.id);
  const forMs = attempt === undefined ? null : nowMs - attempt.startedAt;
  if (candidate !== undefined) return { mark: "◆", colour: "yellow", text: candidateText(candidate), forMs };
  if (attempt !== undefined) return { mark: "●", colour: "cyan", text: attemptText(attempt, task), forMs };
  const merged = (id: string) => view.taskList.some((one) => one.id === id && isOnMain(one.status));
  const open = plan?.tasks.find(({ id }) => id === task.id)?.dependencies.filter((id) => !merged(id)) ?? [];
  const again = task.level === null ? "" : `${levelText(task.level)}, `;
  const waits = open.length > 0 ? `after ${open.map((id) => oneLine(id)).join(", ")}` : waitText(task);
  return { mark: "○", colour: "dim", text: `${again}${waits}`, forMs: null };
}

function waitText({ reason }: TaskView): string {
  return reason === null ? "waits for a sandbox" : `interrupted, waits to resume: ${oneLine(reason)}`;
}

function attemptText({ number, level, status, phase, doing }: AttemptView, { refused }: TaskView): string {
  const back = refused === undefined ? "" : `; ${refusedText(refused)}`;
  const tries = number === 1 ? "" : `attempt ${number}${level === null ? "" : ` (${levelText(level)})`}, `;
  const at = oneLine(status === "paused" ? "paused" : (phase ?? status));
  return `${tries}${at}${doing === null ? "" : `: ${oneLine(doing)}`}${back}`;
}

/** `refused by tests (2 times): the cart is empty` */
function refusedText({ gate, finding, times }: NonNullable<TaskView["refused"]>): string {
  const often = times === 1 ? "" : ` (${times} times)`;
  return gate === "attempt"
    ? `failed before${often}: ${oneLine(finding)}`
    : `refused by ${oneLine(gate)}${often}: ${oneLine(finding)}`;
}

const gateMarks: Readonly<Record<GateState, string>> = {
  open: "·",
  running: "▸",
  passed: "✓",
  failed: "✗",
  broken: "!",
};

/** `in line 2: compatibility ✓ build ✓ tests ▸ intent · main-test ·` */
function candidateText({ place, status, ...candidate }: CandidateView): string {
  const where = place === null ? status : `in line ${place}`;
  return `${where}: ${gatesAndReason(candidate)}`;
}

/** `build !  (waits: no space left on device)` */
export function gatesAndReason({ gates, reason }: Pick<CandidateView, "gates" | "reason">): string {
  return reason === null ? gatesText(gates) : `${gatesText(gates)}  (waits: ${oneLine(reason, 60)})`;
}

function gatesText(gates: CandidateView["gates"]): string {
  return gates.map(({ name, state }) => `${oneLine(name)} ${gateMarks[state]}`).join("  ");
}

export function cut(text: string, most: number): string {
  if (text.length <= most) return text;
  return most <= 0 ? "" : `${[...text].slice(0, most - 1).join("")}…`;
}
