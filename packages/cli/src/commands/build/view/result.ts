import type { Client } from "@slipway/client";
import { type BuildView, type CostsView, hasCode, type Intent, type MergeQueueView } from "@slipway/contract";
import type { Context } from "../../../input/command.ts";
import { formatDuration } from "../../../input/duration.ts";
import { type Paint, quoted } from "../../../terminal/terminal.ts";
import { formatMoney } from "./money.ts";
import { countTasks, doneText, mergeText, missingText, oneLine, previewText, statusText } from "./words.ts";

/** How `slipway build` and `slipway watch` exit. */
const buildExits = { succeeded: 0, failed: 1, cancelled: 2, paused: 3, left: 4 } as const;

/** Shows the result or the current state of a build and returns the exit code. */
export async function showResult(context: Context, client: Client, view: BuildView, left: boolean): Promise<number> {
  const { id } = view;
  const result = {
    view,
    costs: await client.builds.costs(id),
    queue: await client.builds.mergeQueue(id),
    intent: await readIntent(client, view),
  };
  if (context.json) {
    const { costs, queue } = result;
    await context.result({ result: { build: view, costs, mergeQueue: queue, left } }, "");
  } else if (!left) {
    await context.out.write(resultText(result, context.paint));
  }
  if (left) await context.note(`the build continues: slipway watch ${id}, slipway cancel ${id}`);
  const advice = left ? undefined : adviceOn(view);
  if (advice !== undefined) await context.note(advice);
  if (left) return buildExits.left;
  return view.status === "planning" || view.status === "running" ? buildExits.left : buildExits[view.status];
}

/** What the user has to do for a build that waits for them. */
export function adviceOn(view: BuildView): string | undefined {
  if (view.repositoryMissing && view.endedAt === null) {
    return `${missingText(view)}: it cannot continue. End it with: slipway cancel ${view.id}`;
  }
  if (view.status === "paused" && view.reason === "budget") {
    const isSpent = view.money.spentMicroUsd >= view.money.budgetMicroUsd;
    const again = isSpent ? "" : `Retry what was refused with: slipway resume ${view.id}. `;
    return `${again}Continue with a larger budget: slipway resume --budget <usd> ${view.id}`;
  }
  const waits = view.status === "paused" || (view.planning?.step === "held" && view.endedAt === null);
  const again = waits ? `Continue with: slipway resume ${view.id}` : undefined;
  const [dispute] = view.endedAt === null ? view.disputes : [];
  if (dispute === undefined) return again;
  const disputed = `Work keeps failing a check of ${oneLine(dispute.criterion)}. Is the check wrong? See: slipway disputes ${view.id}`;
  return again === undefined ? disputed : `${disputed}\n${again}`;
}

async function readIntent(client: Client, { id }: BuildView): Promise<Intent | null> {
  try {
    return (await client.builds.intent(id)).intent;
  } catch (error) {
    if (hasCode(error, "not_ready")) return null;
    throw error;
  }
}

export interface Result {
  readonly view: BuildView;
  readonly costs: CostsView;
  readonly queue: MergeQueueView;
  readonly intent: Intent | null;
}

export function resultText({ view, costs, queue, intent }: Result, paint: Paint): string {
  const { money } = view;
  const took = view.endedAt === null ? "" : ` in ${formatDuration(view.endedAt - view.createdAt)}`;
  const colour = view.status === "succeeded" ? "green" : view.status === "paused" ? "yellow" : "red";
  const total = countTasks(view.tasks);
  const field = (name: string, value: string | null) =>
    value === null ? [] : [`${paint("dim", `${name}:`.padEnd(12))}${value}`];
  const lines = [
    `${paint(colour, statusText(view))}${took}: ${oneLine(view.request, 200)}`,
    ...section("Criteria", criteriaLines(view, intent, paint), paint),
    ...section("Not merged", failedLines(view, paint), paint),
    ...section("Gates", gateLines(queue), paint),
    "",
    ...field("tasks", total === 0 ? null : doneText(view.tasks)),
    ...field("cost", `${formatMoney(money.spentMicroUsd)} of ${formatMoney(money.budgetMicroUsd)}${mostSpent(costs)}`),
    ...field("repository", view.repository === null ? null : `git clone ${quoted(oneLine(view.repository))} app`),
    ...field("merge", view.result === null ? null : mergeText(view.result)),
    ...field("preview", previewText(view)),
    ...field("pull", view.pullRequest === null ? null : oneLine(view.pullRequest, 200)),
    ...field("remote", view.remoteFailure === null ? null : oneLine(view.remoteFailure, 200)),
  ];
  return `${lines.join("\n")}\n`;
}

function section(title: string, lines: readonly string[], paint: Paint): string[] {
  return lines.length === 0 ? [] : [paint("bold", title), ...lines.map((line) => `  ${line}`)];
}

/** With the evidence of the last satisfaction check, if there was one. */
function criteriaLines({ criteria }: BuildView, intent: Intent | null, paint: Paint): string[] {
  const evidence = new Map(criteria.map((seen) => [seen.id, seen]));
  const all = [
    ...(intent?.criteria ?? []).map(({ id, statement }) => [id, statement] as const),
    ...(intent?.workflows ?? []).map(({ id, title }) => [id, title] as const),
  ];
  return all.flatMap(([id, statement]) => {
    const seen = evidence.get(id);
    const mark = seen === undefined ? "·" : seen.satisfied ? paint("green", "✓") : paint("red", "✗");
    const line = `${mark} ${oneLine(statement)}`;
    return seen === undefined || seen.text === "" ? [line] : [line, `  ${paint("dim", oneLine(seen.text, 300))}`];
  });
}

function failedLines({ status, taskList }: BuildView, paint: Paint): string[] {
  // A cancel fails every open task.
  if (status === "cancelled") return [];
  return taskList
    .filter(({ status }) => status === "failed")
    .map(({ id, reason }) => `${paint("red", "✗")} ${oneLine(id)}: ${oneLine(reason ?? "?", 300)}`);
}

function gateLines({ gates }: MergeQueueView): string[] {
  const width = Math.max(0, ...gates.map(({ name }) => name.length));
  return gates.map(({ name, passed, failed, broken }) => {
    const others = [failed > 0 ? `, ${failed} failed` : "", broken > 0 ? `, ${broken} broken` : ""].join("");
    return `${oneLine(name).padEnd(width)}  ${passed} passed${others}`;
  });
}

const mostShown = 3;

function mostSpent({ by }: CostsView): string {
  const tasks = by.task.filter(({ of, spentMicroUsd }) => of !== null && spentMicroUsd > 0);
  if (tasks.length < 2) return "";
  const most = tasks.toSorted((a, b) => b.spentMicroUsd - a.spentMicroUsd).slice(0, mostShown);
  const words = most.map(({ of, spentMicroUsd }) => `${oneLine(of ?? "")} ${formatMoney(spentMicroUsd)}`);
  return `; most for ${words.join(", ")}`;
}
