import type { RunnerEvent } from "@slipway/contract";
import type { FinalEvent } from "./supervise.ts";

/** How a run ended by its own account. */
export type RunnerEnd = Pick<Extract<RunnerEvent, { type: "ended" }>, "reason" | "message">;

/** As its agent ended. */
export function endOf(final: FinalEvent): RunnerEnd {
  if (final.type === "error") return { reason: final.kind, message: final.message };
  return { reason: final.outcome, message: final.text };
}
