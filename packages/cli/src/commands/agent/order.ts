import { agentNameSchema, microUsdPerUsd, type RunTaskInput, SlipwayError } from "@slipway/contract";
import type { Arguments } from "../../input/command.ts";
import { UsageError } from "../../input/failure.ts";
import { choice, directoryAt, sourceChoice } from "../../input/request.ts";

/** The options of `slipway agent run`. */
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
  /** Undefined to ask. */
  readonly apply: boolean | undefined;
}

const hourMs = 3_600_000;
const longestMs = 23 * hourMs;

export function readOrder(args: Arguments): Order {
  const agent = agentNameSchema.safeParse(args.text("agent") ?? "builtin");
  if (!agent.success) {
    const known = "builtin, claude-code, acp:opencode, acp:codex, acp:gemini and acp:<name> of your own";
    throw new SlipwayError("unknown_agent", `Unknown agent "${args.text("agent")}". Known agents: ${known}.`);
  }
  const prompt = args.many("prompt").join(" ").trim();
  if (prompt === "") throw new UsageError("The prompt is empty.", "Say in plain words what the agent should do.");
  const [apply, discard] = [args.flag("apply"), args.flag("no-apply")];
  if (apply && discard) throw new UsageError("--apply cannot be combined with --no-apply.", "Give one or the other.");
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

function sourceOf(args: Arguments): Order["source"] {
  const { directory, repository } = sourceChoice(args);
  return repository === undefined ? { directory: directoryAt(directory) } : { repository };
}
