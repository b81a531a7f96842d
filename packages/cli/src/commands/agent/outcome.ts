import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Run } from "@slipway/agent-host";
import { type End, microUsdPerUsd, printable, type SandboxId, SlipwayError } from "@slipway/contract";
import type { Sandbox } from "@slipway/sandbox";
import type { Context } from "../../input/command.ts";
import { harmless, toJson } from "../../terminal/terminal.ts";
import { ask, canAsk } from "../build/ask.ts";
import { formatMoney } from "../build/view/money.ts";
import { applyPatch } from "./apply.ts";
import type { Order } from "./order.ts";

interface Ended {
  readonly order: Order;
  readonly run: Run;
  readonly end: End;
}

export interface Outcome extends Ended {
  readonly patch: Buffer;
  /** The run's own, for changes that are not applied. */
  readonly directory: string;
  /** A sandbox that is kept. */
  readonly sandbox: SandboxId | undefined;
}

/** Reports the end, the cost and the changes, and applies the changes if the user wants. Returns the exit code. */
export async function finish(context: Context, outcome: Outcome): Promise<number> {
  const { order, end, patch } = outcome;
  const completed = end.reason === "completed";
  if (!context.json) await context.out.write(patch.length > 0 ? `\n${coloured(patch, context)}\n\n` : "\n");
  await sayEnd(context, outcome, changed(patch));
  const applied = patch.length > 0 && (await wanted(context, order, completed)) && (await apply(context, outcome));
  if (patch.length > 0 && !applied) await keep(context, outcome);
  await sayResult(context, outcome, { applied, sandbox: outcome.sandbox, patch: patch.toString("utf8") });
  if (outcome.sandbox !== undefined) await context.note(`sandbox kept: slipway sandbox shell ${outcome.sandbox}`);
  return completed ? 0 : 1;
}

export interface Uncollected extends Ended {
  readonly sandbox: Sandbox;
  readonly workdir: string;
}

/** For changes that cannot be collected: reports the end and the cost, and how to get the files. */
export async function finishUncollected(context: Context, outcome: Uncollected): Promise<void> {
  const { order, sandbox, workdir } = outcome;
  if (!context.json) await context.out.write("\n");
  await sayEnd(context, outcome, "changes not collected");
  // A stopped sandbox does not expire. One that has ended is stopped already.
  if (!order.keep) await sandbox.stop().catch(ifExpected);
  const state = await sandbox.info().then((info) => info.state, ifExpected);
  await sayResult(context, outcome, { applied: false, sandbox: sandbox.id, patch: null });
  const copy = `slipway sandbox cp ${sandbox.id}:${workdir} <to>`;
  const start = state === "running" ? "" : `slipway sandbox start ${sandbox.id} && `;
  await context.note(`the sandbox is kept${state === undefined ? "" : `, ${state}`}; its files: ${start}${copy}`);
}

async function sayEnd(context: Context, { order, run, end }: Ended, changes: string): Promise<void> {
  if (context.json) return;
  const completed = end.reason === "completed";
  // A completed run's message repeats what the agent has just said.
  const why = completed || end.message === "" ? "" : `: ${harmless(end.message)}`;
  const how = `${context.paint(completed ? "green" : "red", end.reason)}${why}`;
  await context.out.write(`${how}, ${formatMoney((await run.balance()).spentMicroUsd)}, ${changes}\n`);
  if (end.reason === "budget")
    await context.note(
      `the budget of ${formatMoney(order.budgetMicroUsd)} does not cover the next request; raise it with --budget`,
    );
}

interface Told {
  readonly applied: boolean;
  readonly sandbox: SandboxId | undefined;
  /** Null if it could not be collected. */
  readonly patch: string | null;
}

async function sayResult(context: Context, { run, end }: Ended, told: Told): Promise<void> {
  if (!context.json) return;
  const costUsd = (await run.balance()).spentMicroUsd / microUsdPerUsd;
  await context.out.write(`${toJson({ result: { run: run.id, ...end, costUsd, ...told } })}\n`);
}

function ifExpected(error: unknown): undefined {
  if (!(error instanceof SlipwayError)) throw error;
}

/** Never applies the changes of an unfinished run without asking. */
async function wanted(context: Context, order: Order, completed: boolean): Promise<boolean> {
  if (order.apply !== undefined && (completed || !order.apply)) return order.apply;
  if (!canAsk(context)) {
    if (order.apply === undefined) await context.note("use --apply to apply the changes of a completed run");
    return false;
  }
  try {
    const question = `Apply these changes to ${targetOf(order)}? [y/N]`;
    return (await ask(context, question, context.interrupts.signal)) === "y";
  } catch (error) {
    // Ctrl-C means no.
    if (!(error instanceof Error) || error.name !== "AbortError") throw error;
    await context.err.write("\n");
    return false;
  }
}

/** Saves changes that are not applied: the sandbox is destroyed. */
async function keep(context: Context, { directory, patch }: Outcome): Promise<void> {
  const file = join(directory, "changes.patch");
  await writeFile(file, patch);
  await context.note(`not applied; changes saved in ${file}`);
}

/** Saves changes that no longer apply as a file. */
async function apply(context: Context, { order, run, patch }: Outcome): Promise<boolean> {
  const target = targetOf(order);
  try {
    await applyPatch(patch, target, context.io.env);
  } catch (error) {
    const file = join(target, `slipway-${run.id}.patch`);
    await writeFile(file, patch, { flag: "wx" });
    await context.note(`changes saved in ${file}`);
    throw error;
  }
  await context.note(`applied to ${target}`);
  return true;
}

/** Changes of a cloned repository go to the current directory. */
function targetOf({ source }: Order): string {
  return "directory" in source ? source.directory : process.cwd();
}

function coloured(patch: Buffer, context: Context): string {
  const paintLine = (line: string) => {
    if (/^(diff|index|---|\+\+\+|new file|deleted file)/.test(line)) return context.paint("dim", line);
    if (line.startsWith("+")) return context.paint("green", line);
    if (line.startsWith("-")) return context.paint("red", line);
    return line;
  };
  return readable(printable(patch.toString("utf8").trimEnd()))
    .split("\n")
    .map(paintLine)
    .join("\n");
}

/** Without object names and the bytes of binary files. */
export function readable(patch: string): string {
  return patch
    .replaceAll(/^index [0-9a-f]+\.\.[0-9a-f]+.*\n?/gm, "")
    .replaceAll(/^GIT binary patch\n(?:(?:literal|delta) \d+\n(?:[A-Za-z][^\s]+\n?)*\n?)+/gm, "(binary)\n")
    .trimEnd();
}

function changed(patch: Buffer): string {
  const files = patch.toString("latin1").match(/^diff --git /gm)?.length ?? 0;
  if (files === 0) return "nothing changed";
  return files === 1 ? "1 file changed" : `${files} files changed`;
}
