import { type BuildSummary, buildStatuses } from "@slipway/contract";
import type { Context } from "../../input/command.ts";
import { formatDuration } from "../../input/duration.ts";
import { oneOf } from "../../input/request.ts";
import { splitCommas } from "../../input/values.ts";
import { formatTable } from "../../terminal/terminal.ts";
import { formatMoney } from "./view/money.ts";
import { countTasks, oneLine, statusText } from "./view/words.ts";

export async function run(context: Context): Promise<void> {
  const { args, interrupts } = context;
  const status = splitCommas(args.list("status")).map((text) => oneOf(buildStatuses, text, "--status"));
  const limit = args.integer("limit", { min: 1, max: 100 }) ?? 20;
  const client = await context.server();
  const page = await client.builds.list({ status, limit }, { signal: interrupts.signal });
  const { builds, next } = page;
  if (!context.json && args.flag("quiet")) return context.out.write(builds.map(({ id }) => `${id}\n`).join(""));
  await context.result(builds, () => table(builds, context));
  if (next !== null) await context.note("There are older builds; --limit shows more.");
  else if (builds.length === 0) await context.note('No builds. Start one: slipway build "a habit tracker"');
}

function table(builds: readonly BuildSummary[], context: Context): string {
  const now = Date.now();
  const rows = builds.map(({ id, status, reason, tasks, money, createdAt, request }) => [
    id,
    statusText({ status, reason }),
    countTasks(tasks) === 0 ? "-" : `${tasks.merged} of ${countTasks(tasks)}`,
    `${formatMoney(money.spentMicroUsd)} of ${formatMoney(money.budgetMicroUsd)}`,
    `${formatDuration(now - createdAt)} ago`,
    oneLine(request, 60),
  ]);
  return formatTable(["ID", "STATUS", "MERGED", "SPENT", "STARTED", "REQUEST"], rows, context.paint);
}
