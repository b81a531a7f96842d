import type { DestroyReceipt, SandboxId } from "@slipway/contract";
import type { Sandbox } from "@slipway/sandbox";
import type { Context } from "../../input/command.ts";
import { describeFailure, type Failure, ownFailure, UsageError } from "../../input/failure.ts";
import { findSandboxId } from "../../input/resolve.ts";

/** Continues after a failure, and reports all failures at the end. */
export async function run(context: Context): Promise<number> {
  const ids = context.args.many("id");
  const all = context.args.flag("all");
  if (all === ids.length > 0) {
    throw new UsageError(all ? "--all cannot be combined with IDs." : "No sandbox is named.", "Give IDs, or --all.");
  }
  const receipts: DestroyReceipt[] = [];
  const errors: (Failure & { sandbox: string })[] = [];
  for (const text of all ? await everyId(context) : ids) {
    const outcome = await destroy(context, text);
    if ("code" in outcome) {
      const { message, action, code } = outcome;
      errors.push({ sandbox: text, ...outcome });
      await context.note(`error: ${message}\nwhat to do: ${action}\ncode: ${code}`);
    } else {
      receipts.push(outcome);
      const { sandbox, processesEnded: count } = outcome;
      const programs = count === 1 ? "1 process ended" : `${count} processes ended`;
      if (!context.json) await context.out.write(`${sandbox} destroyed: ${programs}, none left; files gone\n`);
    }
  }
  await context.result({ receipts, errors }, "");
  if (receipts.length + errors.length === 0) await context.note("No sandboxes.");
  return errors.length > 0 ? ownFailure : 0;
}

async function everyId(context: Context): Promise<SandboxId[]> {
  const provider = await context.provider();
  return (await provider.list({}, { signal: context.interrupts.signal })).map((info) => info.id);
}

async function destroy(context: Context, text: string): Promise<DestroyReceipt | Failure> {
  const { signal } = context.interrupts;
  const provider = await context.provider();
  try {
    const id = await findSandboxId(provider, text, signal);
    context.progress.status(`destroying ${id}`);
    const sandbox = await provider.get(id, { signal });
    if (context.args.flag("sync")) await syncFirst(context, sandbox);
    return await sandbox.destroy({ signal });
  } catch (error) {
    signal.throwIfAborted();
    const { defect, ...failure } = await describeFailure(error);
    if (defect) throw error;
    return failure;
  } finally {
    context.progress.clear();
  }
}

async function syncFirst(context: Context, sandbox: Sandbox): Promise<void> {
  const { syncAll } = await import("../storage/sync.ts");
  context.progress.status(`syncing ${sandbox.id}`);
  await syncAll(context, sandbox);
}
