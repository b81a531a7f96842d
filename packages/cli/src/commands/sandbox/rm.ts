import type { DestroyReceipt, SandboxId } from "@slipway/contract";
import type { Context } from "../../input/command.ts";
import { describeFailure, type Failure, ownFailure, UsageError } from "../../input/failure.ts";
import { findSandboxId } from "../../input/resolve.ts";

type Outcome =
  | { readonly sandbox: string; readonly receipt: DestroyReceipt }
  | { readonly sandbox: string; readonly failure: Failure };

/** Continues after a failure, and reports all failures at the end. */
export async function run(context: Context): Promise<number> {
  const ids = context.args.many("id");
  const all = context.args.flag("all");
  if (all === ids.length > 0) {
    throw new UsageError(all ? "--all cannot be combined with IDs." : "No sandbox is named.", "Give IDs, or --all.");
  }
  const outcomes: Outcome[] = [];
  for (const text of all ? await everyId(context) : ids) {
    const outcome = await destroy(context, text);
    outcomes.push(outcome);
    if (!context.json) await report(context, outcome);
  }
  const receipts = outcomes.flatMap((outcome) => ("receipt" in outcome ? [outcome.receipt] : []));
  const errors = outcomes.flatMap((outcome) =>
    "failure" in outcome ? [{ sandbox: outcome.sandbox, ...outcome.failure }] : [],
  );
  await context.result({ receipts, errors }, "");
  if (outcomes.length === 0) await context.note("No sandboxes.");
  return errors.length > 0 ? ownFailure : 0;
}

async function everyId(context: Context): Promise<SandboxId[]> {
  const provider = await context.provider();
  return (await provider.list({}, { signal: context.interrupts.signal })).map((info) => info.id);
}

async function destroy(context: Context, text: string): Promise<Outcome> {
  const { signal } = context.interrupts;
  const provider = await context.provider();
  try {
    const id = await findSandboxId(provider, text, signal);
    context.progress.status(`destroying ${id}`);
    const sandbox = await provider.get(id, { signal });
    return { sandbox: id, receipt: await sandbox.destroy({ signal }) };
  } catch (error) {
    signal.throwIfAborted();
    const { defect, ...failure } = await describeFailure(error);
    if (defect) throw error;
    return { sandbox: text, failure };
  } finally {
    context.progress.clear();
  }
}

async function report(context: Context, outcome: Outcome): Promise<void> {
  if ("failure" in outcome) {
    const { message, action, code } = outcome.failure;
    await context.note(`error: ${message}\nwhat to do: ${action}\ncode: ${code}`);
    return;
  }
  const { processesEnded } = outcome.receipt;
  const programs = processesEnded === 1 ? "1 process ended" : `${processesEnded} processes ended`;
  await context.out.write(`${outcome.sandbox} destroyed: ${programs}, none left; files gone\n`);
}
