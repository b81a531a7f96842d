import { randomUUID } from "node:crypto";
import { type BuildId, culprits, type DisputeView } from "@slipway/contract";
import type { Context } from "../../input/command.ts";
import { UsageError } from "../../input/failure.ts";
import { choice } from "../../input/request.ts";
import { buildOf } from "../../input/resolve.ts";
import type { Paint } from "../../terminal/terminal.ts";
import { oneLine } from "./view/words.ts";

export async function run(context: Context): Promise<void> {
  const settled = readRuling(context);
  const { client, id, signal } = await buildOf(context);
  if (settled !== undefined) {
    const { number, ...ruling } = settled;
    const dispute = await client.builds.settleDispute(id, number, ruling, { signal, key: randomUUID() });
    return await context.result(dispute, () => disputeText(dispute, context.paint));
  }
  const { disputes } = await client.builds.disputes(id, { signal });
  await context.result({ disputes }, () => disputes.map((one) => disputeText(one, context.paint)).join("\n"));
  if (disputes.length === 0) await context.note(`${id} has no disputed checks`);
  const waiting = disputes.find(({ status }) => status === "user");
  if (waiting === undefined) return;
  const { endedAt } = await client.builds.get(id, { signal });
  await context.note(endedAt === null ? howToDecide(id, waiting) : `${id} has ended: nothing is left to decide`);
}

function howToDecide(id: BuildId, { number }: DisputeView): string {
  return [
    "Is the check right, or does it ask for what you never wanted? Decide it with one of:",
    ...culprits.map((wrong) => `  slipway disputes --settle ${number} --wrong ${wrong} --because "<why>" ${id}`),
  ].join("\n");
}

function readRuling({ args }: Context) {
  const settle = args.integer("settle", { min: 1, max: 999_999 });
  const wrong = choice(args, "wrong", culprits);
  const because = args.text("because");
  if (settle === undefined && wrong === undefined && because === undefined) return undefined;
  if (settle === undefined || wrong === undefined || because === undefined) {
    const action = 'Add what is missing: --settle <number> --wrong app|check --because "<why>".';
    throw new UsageError("--settle, --wrong and --because go together.", action);
  }
  return { number: settle, wrong, because };
}

function statusText({ status, by }: DisputeView): string {
  const who = by === "user" ? "you" : "a model";
  switch (status) {
    case "judge":
      return by === "user" ? "the check is wrong (you); it is compiled anew" : "a model decides";
    case "user":
      return "waits for you";
    case "app":
      return `the app is wrong (${who})`;
    case "check":
      return `the check was wrong (${who})`;
  }
}

function disputeText(dispute: DisputeView, paint: Paint): string {
  const { number, criterion, task, status, because, check, step, replacement } = dispute;
  const colour = status === "user" ? "yellow" : "dim";
  return [
    `${number}. ${oneLine(criterion)}, failed by ${oneLine(task)}: ${paint(colour, statusText(dispute))}`,
    ...(because === null ? [] : [`   ${oneLine(because, 400)}`]),
    `   ${paint("dim", "the check:")}`,
    ...check.map((line, index) => `   ${index === step ? paint("red", "✗") : " "} ${oneLine(line, 200)}`),
    ...(replacement === null ? [] : [`   ${paint("dim", "compiled anew:")}`]),
    ...(replacement ?? []).map((line) => `     ${oneLine(line, 200)}`),
    "",
  ].join("\n");
}
