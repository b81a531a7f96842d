import { compareIds, depthsOf, type PlanView, type Task } from "@slipway/contract";
import { formatDuration } from "../../../input/duration.ts";
import type { Paint } from "../../../terminal/terminal.ts";
import { counted, oneLine } from "./words.ts";

/** The tasks as a text graph. Tasks of one step can be worked on at the same time. */
export function showPlan(plan: PlanView, paint: Paint): string {
  const { tasks, criticalPath, totals, parts, partition } = plan;
  const lines = [
    `${paint("bold", "Plan")} ${paint("dim", `${counted(tasks.length, "task")}, by ${partition} in ${counted(parts.length, "part")}`)}`,
    ...graph(plan, paint),
    `  ${paint("yellow", "*")} critical path: ${criticalPath.tasks.join(" -> ")}`,
    `  ${paint("dim", "together:")} ${minutes(totals.minutes)} of work, ${costs(totals)}; at least ${minutes(criticalPath.minutes)} with any number of sandboxes`,
  ];
  return `${lines.join("\n")}\n`;
}

function graph({ tasks, criticalPath }: PlanView, paint: Paint): string[] {
  const depths = depthsOf(tasks);
  const steps = Map.groupBy(tasks, ({ id }) => depths.get(id) ?? 0);
  const critical = new Set(criticalPath.tasks);
  const width = (of: (task: Task) => string) => Math.max(0, ...tasks.map((task) => of(task).length));
  const [ids, components, times, costs] = [idOf, componentOf, timeOf, costOf].map(width) as [number, ...number[]];
  const numbers = String(steps.size).length;
  const show = (task: Task, index: number, step: readonly Task[], depth: number) => {
    const number = index === 0 ? String(depth + 1).padStart(numbers) : " ".repeat(numbers);
    const mark = critical.has(task.id) ? paint("yellow", "*") : " ";
    const cells = [
      idOf(task).padEnd(ids),
      componentOf(task).padEnd(components ?? 0),
      timeOf(task).padStart(times ?? 0),
      costOf(task).padStart(costs ?? 0),
    ];
    const after = task.dependencies.length === 0 ? "" : paint("dim", `  <- ${task.dependencies.join(", ")}`);
    return [
      `  ${number} ${branch(index, step.length)} ${mark} ${cells.join("  ")}${after}`,
      `  ${" ".repeat(numbers)} ${index === step.length - 1 ? " " : "│"}     ${paint("dim", oneLine(task.title, 100))}`,
    ];
  };
  return [...steps]
    .sort(([a], [b]) => a - b)
    .flatMap(([depth, step]) =>
      step.toSorted((a, b) => compareIds(a.id, b.id)).flatMap((task, index, all) => show(task, index, all, depth)),
    );
}

function branch(index: number, count: number): string {
  if (count === 1) return "─";
  if (index === 0) return "┬";
  return index === count - 1 ? "└" : "├";
}

const idOf = ({ id }: Task) => id;
const componentOf = ({ component, gpu }: Task) => (gpu === undefined ? component : `${component} on ${gpu}`);
const timeOf = ({ estimate }: Task) => minutes(estimate.minutes);
const costOf = ({ estimate }: Task) => usd(estimate.usd);

function minutes(count: number): string {
  return formatDuration(count * 60_000);
}

function costs({ usd: models, computeUsd }: PlanView["totals"]): string {
  return computeUsd === 0 ? usd(models) : `${usd(models)} for models and ${usd(computeUsd)} for sandboxes`;
}

function usd(amount: number): string {
  return `${amount.toFixed(2)} USD`;
}
