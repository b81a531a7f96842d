import type { Client } from "@slipway/client";
import { type BuildId, type BuildView, type EventView, microUsdPerUsd, newId, type PlanView } from "@slipway/contract";
import type { Context } from "../../input/command.ts";
import { editIntent, requireTerminal, untilHeld } from "./edit-intent.ts";
import { readOrder } from "./order.ts";
import { checkOut, writeFiles } from "./plan-files.ts";
import { stageFailed } from "./stage-failure.ts";
import { eventText } from "./view/events.ts";
import { formatMoney } from "./view/money.ts";
import { showIntent } from "./view/show-intent.ts";
import { showPlan } from "./view/show-plan.ts";
import { statusText } from "./view/words.ts";

/** Turns a request into a locked intent and a plan, and shows and saves both. The build stays paused. */
export async function run(context: Context): Promise<number> {
  const { args, interrupts } = context;
  const { signal } = interrupts;
  const wanted = {
    ...(await readOrder(args, context.io.env)),
    hold: args.flag("edit") ? ("both" as const) : ("plan" as const),
  };
  const out = args.text("out");
  await checkOut(out);
  if (args.flag("edit")) requireTerminal(context);
  const client = await context.server();
  const { id } = await client.builds.start({ id: newId("bld"), ...wanted }, { signal });
  await context.note(`build ${id}`);
  const view = await follow(context, client, id).catch(async (error) => {
    if (signal.aborted) await context.note(`planning continues: slipway logs -f ${id}, or slipway cancel ${id}`);
    throw error;
  });
  if (view.planning !== null) return await withoutPlan(context, view);
  const [intent, plan] = await Promise.all([client.builds.intent(id, { signal }), client.builds.plan(id, { signal })]);
  const files = await writeFiles({ out, id }, { "slipway-intent.json": intent, "slipway-plan.json": planFile(plan) });
  await context.result({ build: view, intent, plan, files }, () =>
    [showIntent(intent, context.paint), showPlan(plan, context.paint)].join("\n"),
  );
  await context.note(`planning cost ${formatMoney(view.money.spentMicroUsd)}; saved ${files.join(", ")}`);
  const { budgetMicroUsd } = view.money;
  if ((plan.totals.usd + plan.totals.computeUsd) * microUsdPerUsd > budgetMicroUsd) {
    await context.note(`the plan's estimate exceeds the budget of ${formatMoney(budgetMicroUsd)}`);
  }
  await context.note(`To carry it out: slipway resume ${id}`);
  return 0;
}

/** Follows the build until it has a plan, waits or ends. */
async function follow(context: Context, client: Client, id: BuildId): Promise<BuildView> {
  const { signal } = context.interrupts;
  for await (const event of client.builds.follow(id, { signal })) {
    if (event.type === "stage.failed") await stageFailed(context, event.data);
    if (event.type === "stage.began") context.progress.status(eventText(event));
    else context.progress.line(`${eventText(event)}${await costAfter(event, client, id, signal)}`);
    if (event.type === "intent.drafted" && context.args.flag("edit")) await edit(context, client, id);
    // Only the turn behind these events stores what a stage has made.
    if (event.type !== "build.paused" && event.type !== "build.ended") continue;
    const view = await client.builds.get(id, { signal });
    if (view.status !== "planning") return view;
  }
  return await client.builds.get(id, { signal });
}

const paidStages = ["intent.drafted", "intent.locked", "plan.made"];

/** Model costs at the end of a stage. */
async function costAfter({ type }: EventView, client: Client, id: BuildId, signal: AbortSignal): Promise<string> {
  if (!paidStages.includes(type)) return "";
  const { money } = await client.builds.get(id, { signal });
  return ` (${formatMoney(money.spentMicroUsd)} so far)`;
}

async function edit(context: Context, client: Client, id: BuildId): Promise<void> {
  const { signal } = context.interrupts;
  if (!(await untilHeld(client, id, signal))) return;
  await editIntent(context, client, id);
  await client.builds.lock(id, { signal });
}

async function withoutPlan(context: Context, view: BuildView): Promise<number> {
  await context.result({ build: view }, `${view.id} ${statusText(view)}\n`);
  if (view.status === "paused" && view.reason === "budget") {
    await context.note(`The budget does not cover planning. To raise it: slipway resume --budget <usd> ${view.id}`);
  }
  return 1;
}

function planFile({ mode, intentHash, tasks, criticalPath, totals, partition, parts }: PlanView) {
  return { mode, intentHash, tasks, partition, parts, criticalPath, totals };
}
