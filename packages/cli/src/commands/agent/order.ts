import { stat } from "node:fs/promises";
import { resolve } from "node:path";
import { agentNameSchema, microUsdPerUsd, type RunTaskInput, SlipwayError } from "@slipway/contract";
import type { Arguments } from "../../input/command.ts";
import { UsageError } from "../../input/failure.ts";
import { choice } from "../../input/request.ts";

/** What `slipway agent run` is asked for. */
export interface Order {
  readonly agent: string;
  readonly prompt: string;
  readonly model: string | undefined;
  readonly budgetMicroUsd: number;
  readonly workers: number;
  readonly permissions: RunTaskInput["permissions"];
  readonly totalMs: number;
  readonly source: { readonly directory: string } | { readonly repository: string };
  readonly keep: boolean;
  /** Undefined: ask. */
  readonly apply: boolean | undefined;
}

const hourMs = 3_600_000;
const longestMs = 23 * hourMs;

export function readOrder(args: Arguments): Order {
  const agent = agentNameSchema.safeParse(args.text("agent") ?? "builtin");
  if (!agent.success) {
    const known = "builtin, claude-code, acp:opencode, acp:codex, acp:gemini and acp:<name> of one that you describe";
    throw new SlipwayError("unknown_agent", `There is no agent "${args.text("agent")}"; there are ${known}.`);
  }
  const prompt = args.many("prompt").join(" ").trim();
  if (prompt === "") throw new UsageError("The prompt is empty.", "Say in words what the agent is to do.");
  const [apply, discard] = [args.flag("apply"), args.flag("no-apply")];
  if (apply && discard) throw new UsageError("--apply excludes --no-apply.", "Give one or the other.");
  const totalMs = args.durationMs("timeout") ?? hourMs;
  if (totalMs < 1000 || totalMs > longestMs) {
    throw new UsageError("--timeout is out of range.", "Choose from 1s to 23h.");
  }
  return {
    agent: agent.data,
    prompt,
    model: args.text("model"),
    budgetMicroUsd: Math.round((args.decimal("budget") ?? 5) * microUsdPerUsd),
    workers: args.integer("workers", { min: 0, max: 4 }) ?? 0,
    permissions: choice(args, "permissions", ["allow", "ask"]) ?? "allow",
    totalMs,
    source: sourceOf(args),
    keep: args.flag("keep"),
    apply: apply ? true : discard ? false : undefined,
  };
}

/** Before anything is made for it. */
export async function checkSource({ source }: Order): Promise<void> {
  if (!("directory" in source)) return;
  const found = await stat(source.directory).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT" || error.code === "ENOTDIR") return undefined;
    throw error;
  });
  if (found?.isDirectory()) return;
  const wrong = found ? `${source.directory} is not a directory.` : `There is no directory ${source.directory}.`;
  throw new UsageError(wrong, "Name a directory with --dir, or a repository with --repo.");
}

function sourceOf(args: Arguments): Order["source"] {
  const [directory, repository] = [args.text("dir"), args.text("repo")];
  if (directory !== undefined && repository !== undefined) {
    throw new UsageError("--dir excludes --repo.", "Give one or the other.");
  }
  if (repository !== undefined) return { repository };
  return { directory: resolve(directory ?? ".") };
}
