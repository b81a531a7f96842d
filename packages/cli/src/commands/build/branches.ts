import type { BranchesView } from "@slipway/contract";
import type { Context } from "../../input/command.ts";
import { formatDuration } from "../../input/duration.ts";
import { buildOf, findBranchId } from "../../input/resolve.ts";
import { formatTable, quoted } from "../../terminal/terminal.ts";
import { oneLine } from "./view/words.ts";

export async function run(context: Context): Promise<void> {
  const { client, id: build, signal } = await buildOf(context);
  const wanted = context.args.text("discard");
  if (wanted !== undefined) {
    const branch = await findBranchId(client, build, wanted, signal);
    const gone = await client.builds.discardBranch(build, branch, { signal });
    return await context.result(gone, `${gone.id} discarded: ${oneLine(gone.task)} at ${oneLine(gone.commit, 64)}\n`);
  }
  const kept = await client.builds.branches(build, { signal });
  await context.result(kept, () => table(kept, context));
  const { repository, branches } = kept;
  if (branches.length === 0) await context.note(`${build} has no branches`);
  else if (repository !== null) {
    await context.note(`To fetch one: git fetch ${quoted(oneLine(repository))} <ref>`);
  }
}

function table({ branches }: BranchesView, { paint }: Context): string {
  const now = Date.now();
  const rows = branches.map(({ ref, task, status, reason, commit, at }) => [
    oneLine(ref),
    oneLine(task),
    reason === null ? status : `${status} (${oneLine(reason, 60)})`,
    oneLine(commit).slice(0, 10),
    `${formatDuration(now - at)} ago`,
  ]);
  return formatTable(["REF", "TASK", "STATUS", "COMMIT", "SINCE"], rows, paint);
}
