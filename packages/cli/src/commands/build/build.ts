import type { Client } from "@slipway/client";
import {
  agentNameSchema,
  type BuildId,
  type BuildView,
  newId,
  providerOf,
  type StartBuild,
  sandboxModes,
} from "@slipway/contract";
import type { Context } from "../../input/command.ts";
import { UsageError } from "../../input/failure.ts";
import { choice, given } from "../../input/request.ts";
import { buildOf } from "../../input/resolve.ts";
import { ask, canAsk } from "./ask.ts";
import { editIntent, untilHeld } from "./edit-intent.ts";
import { readOrder } from "./order.ts";
import { formatMoney } from "./view/money.ts";
import { showResult } from "./view/result.ts";
import { showIntent } from "./view/show-intent.ts";
import { showPlan } from "./view/show-plan.ts";
import { type UserTurn, type Watched, watchBuild } from "./view/watch.ts";

/** Builds a running app from a request. */
export async function run(context: Context): Promise<number> {
  const { args, interrupts } = context;
  const { signal } = interrupts;
  const asks = !args.flag("yes") && canAsk(context);
  const wanted = { ...(await readBuildOrder(context)), hold: asks ? ("both" as const) : ("none" as const) };
  const { buildMode } = wanted;
  const client = await context.server(given({ SANDBOX_PROVIDER: buildMode && providerOf(buildMode) }));
  const { id } = await client.builds.start({ id: newId("bld"), ...wanted }, { signal });
  await context.note(`build ${id}`);
  const onTurn = asks ? turnsOf(context, client, id) : undefined;
  const { view, left } = await watchBuild(context, client, { id, after: 0, onTurn });
  return await showResult(context, client, view, left);
}

/** Returns to a build. */
export async function watch(context: Context): Promise<number> {
  const { client, id, signal } = await buildOf(context);
  const view = await client.builds.get(id, { signal });
  if (view.endedAt !== null || view.status === "paused") return await showResult(context, client, view, false);
  const { view: last, left } = await watchBuild(context, client, { id, after: view.lastEvent });
  return await showResult(context, client, last, left);
}

async function readBuildOrder({ args, io }: Context): Promise<StartBuild> {
  const order = await readOrder(args, io.env);
  const agent = args.text("agent");
  if (agent !== undefined && !agentNameSchema.safeParse(agent).success) {
    throw new UsageError(`--agent: "${agent}" is not builtin, claude-code or acp:<name>.`);
  }
  const slots = args.integer("parallel", { min: 1, max: 1000 });
  const workers = args.integer("workers", { min: 0, max: 4 });
  const settings = { ...order.settings, ...given({ slots, agent, workers }) };
  return { ...order, settings, ...given({ buildMode: choice(args, "build-mode", sandboxModes) }) };
}

/** Asks the user to confirm the intent, then once the plan: any later pause was requested. */
function turnsOf(context: Context, client: Client, id: BuildId): NonNullable<Watched["onTurn"]> {
  let isPlanShown = false;
  return async ({ type }, signal) => {
    if (type === "intent.drafted") {
      return (await untilHeld(client, id, signal)) ? await agreeOnIntent(context, client, id, signal) : undefined;
    }
    const view = await client.builds.get(id, { signal });
    if (isPlanShown || view.status !== "paused" || view.reason !== "user" || view.planning !== null) return undefined;
    isPlanShown = true;
    return await agreeOnPlan(context, client, view, signal);
  };
}

async function agreeOnIntent(context: Context, client: Client, id: BuildId, signal: AbortSignal): Promise<UserTurn> {
  for (;;) {
    await context.err.write(`\n${showIntent(await client.builds.intent(id, { signal }), context.paint)}\n`);
    const answer = await ask(context, "Is this what you want? [Y]es, [e]dit it, or [n]o:", signal);
    if (answer === "e") await editIntent(context, client, id);
    if (answer === "n") {
      await client.builds.cancel(id, { signal });
      return "continue";
    }
    if (answer !== "y" && answer !== "") continue;
    await client.builds.lock(id, { signal });
    return "continue";
  }
}

async function agreeOnPlan(
  context: Context,
  client: Client,
  { id, money }: BuildView,
  signal: AbortSignal,
): Promise<UserTurn> {
  const plan = await client.builds.plan(id, { signal });
  await context.err.write(`\n${showPlan(plan, context.paint)}\n`);
  const answer = await ask(
    context,
    `Carry it out for at most ${formatMoney(money.budgetMicroUsd)}? [Y]es or [n]ot now:`,
    signal,
  );
  if (answer !== "y" && answer !== "") return "leave";
  await client.builds.resume(id, { signal });
  return "continue";
}
