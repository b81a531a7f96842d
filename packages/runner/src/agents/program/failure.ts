import { type ClaimedEnd, type ErrorCode, isErrorCode } from "@slipway/contract";
import { claimEnd } from "../../supervise/end.ts";

export interface FailureFacts {
  /** The HTTP status from the gateway, if the agent reports it. */
  readonly status?: number | undefined;
  /** The agent's own class of failure, translated. */
  readonly reason?: ClaimedEnd["reason"] | undefined;
  /** The agent's words. The gateway puts its code at the end of a refusal, as in `... [unknown_model]`. */
  readonly message: string;
}

/** How a turn ends after a failed model call: by the gateway's code, else the agent's class, else the status. */
export function failureEnd({ status, reason, message }: FailureFacts): ClaimedEnd {
  const code = findCode(message);
  const known = code === undefined && status === 402 ? "budget" : code && reasonsByCode[code];
  return claimEnd(known ?? reason ?? reasonOfStatus(status) ?? "internal", message);
}

const reasonsByCode: Partial<Record<ErrorCode, ClaimedEnd["reason"]>> = {
  budget_exhausted: "budget",
  answer_refused: "refused",
  run_token_invalid: "auth",
  missing_key: "auth",
  model_key_refused: "auth",
  role_forbidden: "auth",
  unknown_model: "model_not_found",
  unknown_price: "model_not_found",
  model_rate_limited: "rate_limited",
  model_overloaded: "overloaded",
  model_unreachable: "network",
  model_timeout: "network",
  model_refused: "invalid_request",
  invalid_request: "invalid_request",
  too_large: "invalid_request",
  cassette_missing: "invalid_request",
  cassette_version: "invalid_request",
  stream_truncated: "truncated",
  invalid_answer: "protocol",
};

function findCode(message: string): ErrorCode | undefined {
  for (const [, word] of message.matchAll(/\[([a-z_]+)\]/g)) if (isErrorCode(word)) return word;
  return undefined;
}

function reasonOfStatus(status: number | undefined): ClaimedEnd["reason"] | undefined {
  if (status === undefined) return undefined;
  if (status === 401 || status === 403) return "auth";
  if (status === 404) return "model_not_found";
  if (status === 408 || status === 504) return "network";
  if (status === 429) return "rate_limited";
  return status >= 500 ? "overloaded" : "invalid_request";
}
