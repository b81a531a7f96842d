import { buildSettingsSchema, intentLimits, microUsdPerUsd, requestTextSchema } from "@slipway/contract";
import type { Arguments } from "../../input/command.ts";
import { UsageError } from "../../input/failure.ts";

/** What `--budget` says. Refused here, in the words of the command line, before anything is started. */
export function readBudget(args: Arguments): number | undefined {
  const usd = args.decimal("budget");
  if (usd === undefined) return undefined;
  const microUsd = Math.round(usd * microUsdPerUsd);
  if (buildSettingsSchema.shape.budgetMicroUsd.safeParse(microUsd).success) return microUsd;
  throw new UsageError(`--budget: ${usd} is no budget.`, "Give more than 0 and at most 1000000 US dollars.");
}

/** All words of the request. */
export function readRequest(args: Arguments): string {
  const request = args.many("request").join(" ");
  if (request.trim() === "") throw new UsageError("The request is empty.", "Say in words what you want.");
  if (requestTextSchema.safeParse(request).success) return request;
  const most = intentLimits.requestCharacters;
  throw new UsageError(
    `The request has ${request.length} characters, and at most ${most} are read.`,
    "Say it in fewer words; what is in files belongs into a repository, with --mode feature.",
  );
}
