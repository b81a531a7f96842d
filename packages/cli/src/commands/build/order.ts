import {
  type BuildSource,
  buildModes,
  buildSecretsSchema,
  buildSettingsSchema,
  type InjectedSecret,
  intentLimits,
  microUsdPerUsd,
  partitions,
  requestTextSchema,
  type StartBuild,
  sandboxModes,
} from "@slipway/contract";
import type { Arguments } from "../../input/command.ts";
import { UsageError } from "../../input/failure.ts";
import { choice, directoryAt, given, injectedSecrets, sourceChoice } from "../../input/request.ts";
import type { Environment } from "../../terminal/environment.ts";

/** The options that `slipway plan` and `slipway build` share. */
export function readOrder(args: Arguments, environment: Environment): StartBuild {
  const request = readRequest(args);
  const hasSource = (args.text("dir") ?? args.text("repo")) !== undefined;
  refuseSandboxMode(args.text("mode"));
  const mode = choice(args, "mode", buildModes) ?? (hasSource ? "feature" : "new");
  const settings = given({
    partition: choice(args, "partition", partitions),
    budgetMicroUsd: readBudget(args),
  });
  const secrets = secretsOf(args, environment);
  const source = sourceOf(args, mode === "new");
  return { request, mode, settings, ...given({ source, secrets }) };
}

/** The API's buildMode, which is another thing than its mode. */
function refuseSandboxMode(mode: string | undefined): void {
  if (!sandboxModes.some((known) => known === mode)) return;
  throw new UsageError(`--mode: "${mode}" is no kind of work.`, `Give --build-mode ${mode}.`);
}

function secretsOf(args: Arguments, environment: Environment): InjectedSecret[] | undefined {
  const secrets = injectedSecrets(args, environment);
  const { error } = buildSecretsSchema.safeParse(secrets);
  // The messages name the secret; never show its value.
  if (error) throw new UsageError(`--inject: ${error.issues.map(({ message }) => message).join("; ")}.`);
  return secrets.length > 0 ? secrets : undefined;
}

function sourceOf(args: Arguments, isNew: boolean): BuildSource | undefined {
  const { directory, repository } = sourceChoice(args);
  if (isNew && (directory ?? repository) !== undefined) {
    throw new UsageError("A new app has no repository.", "Give --mode feature or --mode fix, or no mode.");
  }
  if (isNew) return undefined;
  if (repository !== undefined && isAddress(repository)) return { repository };
  return { directory: directoryAt(directory ?? repository) };
}

/** Otherwise it is a local path. */
function isAddress(repository: string): boolean {
  return /^([a-z]+:\/\/|[\w.-]+@)/.test(repository);
}

/** The value of `--budget`, checked before anything starts. */
export function readBudget(args: Arguments): number | undefined {
  const usd = args.decimal("budget");
  if (usd === undefined) return undefined;
  const microUsd = Math.round(usd * microUsdPerUsd);
  if (buildSettingsSchema.shape.budgetMicroUsd.safeParse(microUsd).success) return microUsd;
  throw new UsageError(`--budget: ${usd} is out of range.`, "Give more than 0 and at most 1000000 US dollars.");
}

function readRequest(args: Arguments): string {
  const request = args.many("request").join(" ");
  if (request.trim() === "") throw new UsageError("The request is empty.", "Say in plain words what you want.");
  if (requestTextSchema.safeParse(request).success) return request;
  throw new UsageError(
    `The request has ${request.length} characters; the limit is ${intentLimits.requestCharacters}.`,
    "Shorten it. Put longer material into files of a repository, and use --mode feature.",
  );
}
