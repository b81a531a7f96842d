import { type ErrorCode, isErrorCode, SlipwayError } from "@slipway/contract";
import type { Endpoint } from "../settings/endpoints.ts";
import type { Retries } from "../settings/settings.ts";

const retryableStatuses = new Set([408, 409, 429, 529]);

export function isRetryable(status: number): boolean {
  return status >= 500 || retryableStatuses.has(status);
}

/** How long to wait after the given try, the first being 1. `random` is from 0 to 1. */
export function retryDelayMs(
  retries: Retries,
  attempt: { readonly number: number; readonly retryAfter: string | undefined; readonly nowMs: number },
  random: number,
): number {
  const asked = readRetryAfter(attempt.retryAfter, attempt.nowMs);
  if (asked !== undefined) return Math.min(asked, retries.maxRetryAfterMs);
  const doubled = Math.min(retries.baseMs * 2 ** (attempt.number - 1), retries.maxMs);
  // Requests that failed together do not come back together.
  return doubled * (0.5 + random / 2);
}

/** Seconds, or a date. */
function readRetryAfter(text: string | undefined, nowMs: number): number | undefined {
  if (text === undefined) return undefined;
  if (/^\d+(\.\d+)?$/.test(text.trim())) return Number(text) * 1000;
  const date = Date.parse(text);
  return Number.isNaN(date) ? undefined : Math.max(0, date - nowMs);
}

/** What an endpoint's refusal is to the run. */
export function refusal(endpoint: Endpoint, status: number, message: string): SlipwayError {
  const { provider, key, keyVariable, keyOptional } = endpoint;
  const code = codeOfStatus(status);
  if (code === "model_key_refused" && key === undefined && keyOptional === true) {
    return new SlipwayError(
      "missing_key",
      `${provider} answered ${status}, and there is no key for it: set ${keyVariable}`,
    );
  }
  // Endpoints quote parts of a key that they refuse.
  const words = code === "model_key_refused" ? "" : withoutCodes(message);
  return new SlipwayError(code, `${provider} answered ${status}${words === "" ? "" : `: ${words}`}`);
}

/** The one code in a refusal's words is this gateway's own: an endpoint may be a gateway, or say what it likes. */
function withoutCodes(message: string): string {
  return message.replaceAll(/ ?\[([a-z_]+)\]/g, (mark, word) => (isErrorCode(word) ? "" : mark)).trim();
}

export function codeOfStatus(status: number): ErrorCode {
  if (status === 401 || status === 403) return "model_key_refused";
  if (status === 404) return "unknown_model";
  if (status === 429) return "model_rate_limited";
  if (status >= 500 || status === 408) return "model_overloaded";
  // An endpoint that redirects is set up with a wrong address.
  if (status < 400) return "model_unreachable";
  return "model_refused";
}

const maxMessageChars = 2000;

/** The words of an error body in any of the vendors' shapes, or the beginning of what it is. */
export function errorMessage(body: string): string {
  const words = messageIn(body) ?? body;
  return words.slice(0, maxMessageChars).trim();
}

function messageIn(body: string): string | undefined {
  try {
    const json = JSON.parse(body) as { error?: { message?: unknown } | string; message?: unknown };
    const words = typeof json.error === "object" ? json.error.message : (json.error ?? json.message);
    return typeof words === "string" ? words : undefined;
  } catch {
    return undefined;
  }
}
