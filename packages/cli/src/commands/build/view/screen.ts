import { type BuildView, compareIds, depthsOf, type Intent, isOnMain, type TaskView } from "@slipway/contract";
import { formatDuration } from "../../../input/duration.ts";
import type { Colour, Paint } from "../../../terminal/terminal.ts";
import { formatMoney } from "./money.ts";
import { cut, describeTask, isUnderway, type Looked } from "./task-row.ts";
import { counted, countTasks, doneText, oneLine, stageText, statusText } from "./words.ts";

export interface Screen {
  readonly cols: number;
  readonly rows: number;
  readonly nowMs: number;
  readonly paint: Paint;
}

/** With fewer rows, only the tasks are shown. */
const roomyRows = 16;

/** Draws a build with at most one line less than the screen has: the last one belongs to the terminal. */
export function drawBuild(looked: Looked, screen: Screen): string[] {
  const { cols, rows } = screen;
  const isRoomy = rows >= roomyRows;
  const head = headOf(looked, screen, isRoomy);
  const foot = footOf(looked, screen, isRoomy);
  const room = rows - 1 - head.length - foot.length;
  const tasks = room < 1 || cols < 20 ? [] : taskLines(looked, screen, room);
  return [...head, ...tasks, ...foot].slice(0, Math.max(1, rows - 1));
}

function headOf({ view, intent }: Looked, { cols, nowMs, paint }: Screen, isRoomy: boolean): string[] {
  const { money, planning, attempts, settings } = view;
  const total = countTasks(view.tasks);
  const parts = [
    planning === null || view.status === "paused" ? statusText(view) : stageText(planning),
    formatSeconds((view.endedAt ?? nowMs) - view.createdAt),
    ...(total === 0 ? [] : [doneText(view.tasks)]),
    ...(view.tasks.failed === 0 ? [] : [`${view.tasks.failed} failed`]),
    ...(attempts.length === 0 ? [] : [`${attempts.length} of ${settings.slots} at work`]),
    `${formatMoney(money.spentMicroUsd)} of ${formatMoney(money.budgetMicroUsd)}`,
  ];
  const lines = [paint("bold", cut(oneLine(view.request), cols)), cut(parts.join(" · "), cols)];
  if (!isRoomy) return lines;
  const bar = total === 0 ? [] : [progressBar(view, Math.min(60, cols), paint)];
  return [...lines, ...bar, ...(intent === null ? [] : [intentLine(intent, cols, paint)]), ""];
}

function intentLine({ coreValue, criteria, workflows }: Intent, cols: number, paint: Paint): string {
  const counts = ` (${criteria.length} criteria, ${counted(workflows.length, "workflow")})`;
  return paint("dim", cut(`intent: ${oneLine(coreValue, Math.max(20, cols - 8 - counts.length))}${counts}`, cols));
}

/** One segment per state, as long as its share. A state with any task gets at least one cell. */
function progressBar({ taskList }: BuildView, width: number, paint: Paint): string {
  const kinds: readonly [string, Colour, (task: TaskView) => boolean][] = [
    ["█", "green", ({ status }) => isOnMain(status)],
    ["▓", "cyan", isUnderway],
    ["×", "red", ({ status }) => status === "failed"],
    ["░", "dim", ({ status }) => status === "pending"],
  ];
  const counts = kinds.map(([, , is]) => taskList.filter(is).length);
  const lengths = counts.map((count) => (count === 0 ? 0 : Math.max(1, Math.round((count / taskList.length) * width))));
  const longest = lengths.indexOf(Math.max(...lengths));
  const excess = lengths.reduce((sum, length) => sum + length, 0) - width;
  return kinds
    .map(([mark, colour], index) => [mark, colour, (lengths[index] ?? 0) - (index === longest ? excess : 0)] as const)
    .map(([mark, colour, length]) => (length > 0 ? paint(colour, mark.repeat(length)) : ""))
    .join("");
}

function footOf({ view }: Looked, { cols, paint }: Screen, isRoomy: boolean): string[] {
  // A truncated address is useless.
  const shown = oneLine(view.preview ?? "");
  const where = shown.length > cols - 9 ? cut(`slipway preview ${view.id}`, cols - 9) : shown;
  const preview = view.preview === null ? [] : [`${paint("dim", "preview:")} ${where}`];
  if (!isRoomy) return preview;
  return ["", ...preview, paint("dim", cut("Ctrl-C: detach, pause or cancel", cols))];
}

/** In plan order; without room for all tasks, the ones with activity. */
function taskLines(looked: Looked, screen: Screen, room: number): string[] {
  const { view, plan } = looked;
  const depths = depthsOf(plan?.tasks ?? []);
  const depthOf = ({ id }: TaskView) => depths.get(id) ?? 0;
  const ordered = view.taskList.toSorted((a, b) => depthOf(a) - depthOf(b) || compareIds(a.id, b.id));
  const shown = ordered.length <= room ? ordered : chosen(looked, ordered, room - 1);
  const width = Math.min(24, Math.floor(screen.cols / 3), Math.max(0, ...shown.map(({ id }) => id.length)));
  const numbers = String(Math.max(0, ...shown.map(depthOf)) + 1).length;
  const lines = shown.map((task, index) => {
    const previous = shown[index - 1];
    const isFirst = previous === undefined || depthOf(previous) !== depthOf(task);
    const step = (isFirst ? String(depthOf(task) + 1) : "").padStart(numbers);
    return taskLine(looked, task, { ...screen, step, width });
  });
  return shown.length === ordered.length ? lines : [...lines, foldLine(ordered, shown, screen)];
}

function taskLine(looked: Looked, task: TaskView, screen: Screen & { step: string; width: number }): string {
  const { cols, paint, step, width } = screen;
  const { mark, colour, text, forMs } = describeTask(looked, task, screen.nowMs);
  const time = forMs === null ? "" : formatSeconds(forMs);
  const room = Math.max(0, cols - step.length - width - 5 - (time === "" ? 0 : time.length + 1));
  const id = cut(oneLine(task.id), width).padEnd(width);
  const shown = cut(text, room);
  const gap = time === "" ? "" : `${" ".repeat(Math.max(1, room - shown.length + 1))}${paint("dim", time)}`;
  const tone = (words: string) => (colour === "dim" ? paint("dim", words) : words);
  return `${paint("dim", step)} ${paint(colour, mark)} ${tone(id)}  ${tone(shown)}${gap}`;
}

/** Prefers tasks under way, then failed, next, and merged ones; the rest is only counted. */
function chosen({ view, plan }: Looked, ordered: readonly TaskView[], room: number): TaskView[] {
  const merged = new Set(view.taskList.filter(({ status }) => isOnMain(status)).map(({ id }) => id));
  const waits = new Map(plan?.tasks.map(({ id, dependencies }) => [id, dependencies.some((of) => !merged.has(of))]));
  const rank = (task: TaskView) => {
    if (isUnderway(task)) return 0;
    if (task.status === "failed") return 1;
    if (isOnMain(task.status)) return 3;
    return waits.get(task.id) === true ? 4 : 2;
  };
  const kept = new Set(ordered.toSorted((a, b) => rank(a) - rank(b)).slice(0, Math.max(0, room)));
  return ordered.filter((task) => kept.has(task));
}

function foldLine(all: readonly TaskView[], shown: readonly TaskView[], { cols, paint }: Screen): string {
  const left = Map.groupBy(
    all.filter((task) => !shown.includes(task)),
    ({ status }) => status,
  );
  const counts = [...left].map(([status, tasks]) => `${tasks.length} ${status}`);
  return paint("dim", cut(`… and ${counts.join(", ")}`, cols));
}

/** Nothing finer than a second: the screen is redrawn about once a second. */
function formatSeconds(durationMs: number): string {
  return durationMs < 1000 ? "0s" : formatDuration(durationMs);
}
