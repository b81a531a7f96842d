import { randomUUID } from "node:crypto";
import { culprits, type DisputeView, type disputeStatuses, SlipwayError } from "@slipway/contract";
import type { Context } from "../../input/command.ts";
import { buildOf } from "../../input/resolve.ts";
import type { Paint } from "../../terminal/terminal.ts";
import { oneLine } from "./view/words.ts";

export async function run(context: Context): Promise<void> {
  const { client, id, signal } = await buildOf(context);
  const settled = readRuling(context);
  if (settled !== undefined) {
    const { number, ...ruling } = settled;
    const dispute = await client.builds.settleDispute(id, number, ruling, { signal, key: randomUUID() });
    return await context.result(dispute, () => disputeText(dispute, context.paint));
  }
  const { disputes } = await client.builds.disputes(id, { signal });
  await context.result({ disputes }, () => disputes.map((one) => disputeText(one, context.paint)).join("\n"));
  if (disputes.length === 0) await context.note(`${id} has no disputed checks`);
  const open = disputes.find(({ status }) => status === "user");
  if (open !== undefined) {
    await context.note(
      `Decide it with: slipway disputes --settle ${open.number} --wrong app|check --because "<one sentence>" ${id}`,
    );
  }
}

function readRuling({ args }: Context) {
  const [settle, wrong, because] = [
    args.integer("settle", { min: 1, max: 999_999 }),
    args.text("wrong"),
    args.text("because"),
  ];
  if (settle === undefined && wrong === undefined && because === undefined) return undefined;
  const culprit = culprits.find((one) => one === wrong);
  if (settle === undefined || culprit === undefined || because === undefined) {
    throw new SlipwayError("invalid_request", "--settle <number>, --wrong app|check and --because go together");
  }
  return { number: settle, wrong: culprit, because };
}

const statusWords: Readonly<Record<(typeof disputeStatuses)[number], string>> = {
  judge: "a model decides",
  user: "waits for you",
  app: "the app is wrong",
  check: "the check was wrong",
};

function disputeText(dispute: DisputeView, paint: Paint): string {
  const { number, criterion, task, status, by, because, check, step, replacement } = dispute;
  const colour = status === "user" ? "yellow" : "dim";
  const who = status === "app" || status === "check" ? ` (${by === "user" ? "you" : "a model"})` : "";
  return [
    `${number}. ${oneLine(criterion)}, failed by ${oneLine(task)}: ${paint(colour, `${statusWords[status]}${who}`)}`,
    ...(because === null ? [] : [`   ${oneLine(because, 400)}`]),
    `   ${paint("dim", "the check:")}`,
    ...check.map((line, index) => `   ${index === step ? paint("red", "✗") : " "} ${oneLine(line, 200)}`),
    ...(replacement === null ? [] : [`   ${paint("dim", "compiled anew:")}`]),
    ...(replacement ?? []).map((line) => `     ${oneLine(line, 200)}`),
    "",
  ].join("\n");
}
