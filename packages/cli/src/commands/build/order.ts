import { stat } from "node:fs/promises";
import { resolve } from "node:path";
import {
  type BuildSource,
  buildModes,
  buildSecretsSchema,
  type InjectedSecret,
  partitions,
  type StartBuild,
} from "@slipway/contract";
import type { Arguments } from "../../input/command.ts";
import { UsageError } from "../../input/failure.ts";
import { choice, given, injectedSecrets } from "../../input/request.ts";
import type { Environment } from "../../terminal/environment.ts";
import { readBudget, readRequest } from "./limits.ts";

/** What `slipway plan` and `slipway build` are asked for alike. */
export async function readOrder(args: Arguments, environment: Environment): Promise<StartBuild> {
  const request = readRequest(args);
  const hasSource = (args.text("dir") ?? args.text("repo")) !== undefined;
  const mode = choice(args, "mode", buildModes) ?? (hasSource ? "feature" : "new");
  const settings = given({
    partition: choice(args, "partition", partitions),
    budgetMicroUsd: readBudget(args),
  });
  const secrets = secretsOf(args, environment);
  const source = await sourceOf(args, mode === "new");
  return { request, mode, settings, ...given({ source, secrets }) };
}

function secretsOf(args: Arguments, environment: Environment): InjectedSecret[] | undefined {
  const secrets = injectedSecrets(args, environment);
  const { error } = buildSecretsSchema.safeParse(secrets);
  // Which one of them is told by what is wrong: their values are not shown.
  if (error) throw new UsageError(`--inject: ${error.issues.map(({ message }) => message).join("; ")}.`);
  return secrets.length > 0 ? secrets : undefined;
}

async function sourceOf(args: Arguments, isNew: boolean): Promise<BuildSource | undefined> {
  const [directory, repository] = [args.text("dir"), args.text("repo")];
  if (isNew && (directory ?? repository) !== undefined) {
    throw new UsageError("A new app begins with no repository.", "Give --mode feature or --mode fix, or no mode.");
  }
  if (directory !== undefined && repository !== undefined) {
    throw new UsageError("--dir excludes --repo.", "Give one or the other.");
  }
  if (isNew) return undefined;
  if (repository !== undefined && isAddress(repository)) return { repository };
  const path = resolve(directory ?? repository ?? ".");
  if ((await stat(path).catch(() => undefined))?.isDirectory()) return { directory: path };
  throw new UsageError(`There is no directory ${path}.`, "Name a directory with --dir, or a repository with --repo.");
}

/** Else it is a path of this machine. */
function isAddress(repository: string): boolean {
  return /^([a-z]+:\/\/|[\w.-]+@)/.test(repository);
}
