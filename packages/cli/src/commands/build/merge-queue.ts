import type { MergeQueueView } from "@slipway/contract";
import type { Context } from "../../input/command.ts";
import { formatDuration } from "../../input/duration.ts";
import { buildOf } from "../../input/resolve.ts";
import { formatFields, formatTable } from "../../terminal/terminal.ts";
import { gatesAndReason } from "./view/task-row.ts";
import { oneLine } from "./view/words.ts";

export async function run(context: Context): Promise<void> {
  const { client, id, signal } = await buildOf(context);
  const queue = await client.builds.mergeQueue(id, { signal });
  await context.result(queue, () =>
    [fields(queue, context), candidates(queue, context)].join("\n").trimEnd().concat("\n"),
  );
  if (queue.main === null) await context.note("main is empty");
  else if (queue.candidates.length === 0) await context.note("the merge queue is empty");
}

function fields({ main, merges, window, gates }: MergeQueueView, { paint }: Context): string {
  const last = merges.at(-1);
  const ran = gates.map(({ name, passed, failed, broken }) => `${oneLine(name)} ${passed}/${passed + failed + broken}`);
  return formatFields(
    [
      ["main", main === null ? "-" : oneLine(main, 64)],
      ["merged", last === undefined ? "nothing yet" : `${merges.length}, last ${oneLine(last.task)}`],
      ["window", window === 0 ? "-" : `${window} candidates tested on top of each other`],
      ["gates", ran.length === 0 ? "none run yet" : `${ran.join(", ")} passed`],
    ],
    paint,
  );
}

function candidates({ candidates }: MergeQueueView, { paint }: Context): string {
  const now = Date.now();
  const rows = candidates.map(({ place, task, status, commit, offeredAt, ...candidate }) => [
    place === null ? "-" : String(place),
    oneLine(task),
    status,
    oneLine(commit).slice(0, 10),
    formatDuration(now - offeredAt),
    gatesAndReason(candidate),
  ]);
  return formatTable(["PLACE", "TASK", "STATUS", "COMMIT", "FOR", "GATES"], rows, paint);
}
