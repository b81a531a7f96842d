import type { ClaimedEnd } from "@slipway/contract";
import { z } from "zod";
import { claimEnd } from "../../supervise/end.ts";
import { failureEnd } from "../program/failure.ts";

/**
 * The protocol has no failed turn: Codex's adapter ends one as `end_turn`, with the error as the answer. To a client
 * that declares this extension, it reports failures beside the response.
 */
export const sessionFailureCapability = {
  jetbrains: { air: { version: 1, capabilities: ["sessionFailure"] } },
};

const failureMeta = z.object({
  jetbrains: z.object({
    air: z.object({
      sessionFailure: z.object({ severity: z.string(), category: z.string(), title: z.string() }),
    }),
  }),
});

export interface SessionFailure {
  /** The agent retries by itself. */
  readonly isWarning: boolean;
  readonly category: string;
  readonly title: string;
}

export function sessionFailure(meta: unknown): SessionFailure | undefined {
  const { data } = failureMeta.safeParse(meta);
  if (data === undefined) return undefined;
  const { severity, category, title } = data.jetbrains.air.sessionFailure;
  return { isWarning: severity !== "error", category, title };
}

const reasons: Readonly<Record<string, ClaimedEnd["reason"]>> = {
  access: "auth",
  limit: "rate_limited",
  service: "overloaded",
  request: "invalid_request",
};

/** `begun`: some of the model's answer had arrived. */
export function endOfFailure({ category, title }: SessionFailure, begun: boolean): ClaimedEnd {
  if (title.includes("content_filter")) return claimEnd("refused");
  const status = /\bstatus:? (\d{3})\b/.exec(title)?.[1];
  if (status !== undefined) return failureEnd({ status: Number(status), message: title });
  const isBroken = category === "connection" || title.startsWith("stream disconnected");
  return failureEnd({ reason: isBroken ? (begun ? "truncated" : "network") : reasons[category], message: title });
}
