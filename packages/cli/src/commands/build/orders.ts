import { randomUUID } from "node:crypto";
import type { Client } from "@slipway/client";
import type { BuildId, BuildView } from "@slipway/contract";
import type { Context, Run } from "../../input/command.ts";
import { buildOf } from "../../input/resolve.ts";
import { readBudget } from "./order.ts";
import { formatMoney } from "./view/money.ts";
import { missingText, statusText } from "./view/words.ts";

interface Options {
  readonly signal: AbortSignal;
  readonly key: string;
}

type Order = (client: Client, id: BuildId, options: Options, context: Context) => Promise<BuildView>;

function order(give: Order): Run {
  return async (context) => {
    const { client, id, signal } = await buildOf(context);
    const view = await give(client, id, { signal, key: randomUUID() }, context);
    await context.result(view, `${view.id} ${statusText(view)}\n`);
    if (view.repositoryMissing) {
      const end = view.endedAt === null ? "it can only be cancelled" : "its work is lost";
      await context.note(`${missingText(view)}: ${end}`);
    }
    if (view.status === "paused" && view.reason === "budget") {
      const { budgetMicroUsd, spentMicroUsd } = view.money;
      const spent = `${formatMoney(spentMicroUsd)} of ${formatMoney(budgetMicroUsd)} spent`;
      await context.note(`${spent}; to raise the budget: slipway resume --budget <usd> ${view.id}`);
    }
  };
}

export const pause = order((client, id, options) => client.builds.pause(id, options));
export const cancel = order((client, id, options) => client.builds.cancel(id, options));

/** Resumes a build that waits for money, for its intent or for its user. */
export const resume = order(async (client, id, { signal, key }, { args }) => {
  const budgetMicroUsd = readBudget(args);
  const { planning } = await client.builds.get(id, { signal });
  const view =
    budgetMicroUsd === undefined
      ? await client.builds.resume(id, { signal, key })
      : await client.builds.setBudget(id, { budgetMicroUsd, resume: true }, { signal, key });
  // Last: a resume after the lock could also end the next hold.
  return planning?.step === "held" ? await client.builds.lock(id, { signal }) : view;
});
