import type { SlipwayError } from "@slipway/contract";

/** The message includes our code: many programs show nothing else of an error. */
export function errorMessage(error: SlipwayError): string {
  return `${error.message} [${error.code}]`;
}

const anthropicTypes: Readonly<Record<number, string>> = {
  400: "invalid_request_error",
  401: "authentication_error",
  402: "billing_error",
  403: "permission_error",
  404: "not_found_error",
  413: "request_too_large",
  429: "rate_limit_error",
  500: "api_error",
  504: "timeout_error",
  529: "overloaded_error",
};

export function anthropicErrorType(error: SlipwayError): string {
  return anthropicTypeOf(visibleStatus(error));
}

export function anthropicTypeOf(status: number): string {
  return anthropicTypes[status] ?? (status < 500 ? "invalid_request_error" : "api_error");
}

export function anthropicErrorStatus(type: string): number {
  const known = Object.entries(anthropicTypes).find(([, name]) => name === type);
  return known === undefined ? 500 : Number(known[0]);
}

/** Types and codes of OpenAI by which clients decide. */
const openaiErrors: Readonly<Record<number, { readonly type: string; readonly code: string }>> = {
  401: { type: "authentication_error", code: "invalid_api_key" },
  402: { type: "insufficient_quota", code: "insufficient_quota" },
  403: { type: "permission_error", code: "permission_denied" },
  404: { type: "not_found_error", code: "model_not_found" },
  429: { type: "rate_limit_error", code: "rate_limit_exceeded" },
  529: { type: "server_error", code: "server_is_overloaded" },
};

export interface OpenaiError {
  readonly message: string;
  readonly type: string;
  readonly param: null;
  readonly code: string;
}

export function openaiError(error: SlipwayError): OpenaiError {
  return openaiErrorOf(visibleStatus(error), errorMessage(error), error.code);
}

/** `invalid_prompt` tells clients not to retry. */
export function openaiErrorOf(status: number, message: string, ownCode?: string): OpenaiError {
  const type = status < 500 ? "invalid_request_error" : "server_error";
  const code = ownCode ?? (status < 500 ? "invalid_prompt" : "server_error");
  return { message, type, param: null, code, ...openaiErrors[status] };
}

/** Endpoints that speak OpenAI's dialects put a status, a type or a code in varying places. */
export function openaiErrorStatus(...marks: readonly unknown[]): number {
  for (const mark of marks) {
    const status = Number(mark);
    if (Number.isInteger(status) && status >= 400 && status <= 599) return status;
    const text = typeof mark === "string" ? mark : "";
    const known = Object.entries(openaiErrors).find(([, { type, code }]) => code === text || type === text);
    if (known !== undefined && text !== "server_error") return Number(known[0]);
    if (text === "slow_down" || text.includes("overloaded")) return 529;
    if (text === "invalid_prompt" || text === "invalid_request_error") return 400;
  }
  return 500;
}

/** Google's canonical codes. */
const googleStatuses: Readonly<Record<number, string>> = {
  401: "UNAUTHENTICATED",
  402: "FAILED_PRECONDITION",
  403: "PERMISSION_DENIED",
  404: "NOT_FOUND",
  429: "RESOURCE_EXHAUSTED",
  502: "UNAVAILABLE",
  503: "UNAVAILABLE",
  504: "DEADLINE_EXCEEDED",
  529: "UNAVAILABLE",
};

export function googleError(error: SlipwayError): object {
  return googleErrorOf(visibleStatus(error), errorMessage(error));
}

export function googleErrorOf(status: number, message: string): object {
  const usual = status < 500 ? "INVALID_ARGUMENT" : "INTERNAL";
  return { code: status, message, status: googleStatuses[status] ?? usual };
}

/** A refused key has the status of a server error, but clients must see an authentication error. */
function visibleStatus(error: SlipwayError): number {
  return error.code === "model_key_refused" ? 401 : error.status;
}
