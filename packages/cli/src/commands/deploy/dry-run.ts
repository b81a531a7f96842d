import type { ComputePrice } from "@slipway/contract";
import { deployCeiling, imageBuildMs, trialLimits } from "@slipway/sandbox/deploy";
import type { ModalSettings } from "@slipway/sandbox/settings";
import type { Context } from "../../input/command.ts";
import { formatDuration } from "../../input/duration.ts";
import { formatMoney } from "../build/view/money.ts";

/** Says what a deploy does and costs. The account has been checked, and nothing is made. */
export async function dryRun(
  context: Context,
  { app, apiBase, environment }: ModalSettings,
  price: ComputePrice,
): Promise<number> {
  const { cpu, memoryMb, lifetimeMs } = trialLimits;
  const ceilingMicroUsd = deployCeiling(price);
  const place = environment === undefined ? app : `${app} in environment ${environment}`;
  const steps = [
    `use the app ${place} at ${apiBase}, and make it if there is none`,
    `build the image default, unless it is there (at most ${formatDuration(imageBuildMs)})`,
    `create a test sandbox: ${cpu} CPU, ${memoryMb} MB, at most ${formatDuration(lifetimeMs)}`,
    "run commands in it, write and read a file, and open its preview through a tunnel",
    "take a snapshot, and start a second test sandbox from it",
    "end both sandboxes and delete the snapshot; keep the image",
  ];
  const text = [
    ...steps.map((step, index) => `${index + 1}. ${step}\n`),
    `cost: at most ${formatMoney(ceilingMicroUsd)}, and usually a tenth of that\n`,
  ];
  await context.result({ dryRun: true, app, apiBase, steps, ceilingMicroUsd }, text.join(""));
  await context.note("Nothing was made. If a step fails, what the steps before it have made is taken back.");
  return 0;
}
