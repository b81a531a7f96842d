import { type ErrorCode, isErrorCode, type ModelRole, SlipwayError } from "@slipway/contract";
import {
  AISDKError,
  APICallError,
  JSONParseError,
  NoOutputGeneratedError,
  StreamProviderError,
  TypeValidationError,
} from "ai";
import { errors } from "undici";
import type { Question, Unusable } from "./question.ts";

const maxShownCharacters = 200;

/** The model started an answer that cannot be used. */
export class AnswerError extends SlipwayError {
  /** The last answer, as far as it came. */
  readonly text: string;

  constructor(code: ErrorCode, message: string, text: string, options?: ErrorOptions) {
    super(code, message, options);
    this.text = text;
  }
}

/** The model answered, but no answer could be used. */
export class InvalidAnswerError extends AnswerError {
  constructor(
    role: ModelRole,
    { text, problem }: Unusable,
    { tries = 1, cause }: { tries?: number; cause?: unknown } = {},
  ) {
    const shown = JSON.stringify(text.slice(0, maxShownCharacters));
    super(
      "invalid_answer",
      `no answer of the role ${role} could be used after ${tries} tries: ${problem}; the last began ${shown}`,
      text,
      { cause },
    );
  }
}

/**
 * Turns an SDK failure into one of our errors. A strange response is an answer that cannot be used. Complaints about
 * the call itself are defects and stay as they are.
 */
export function asExpected(error: unknown, { role, signal }: Question): unknown {
  if (error instanceof SlipwayError) return error;
  if (signal?.aborted) return new SlipwayError("aborted", "the caller gave up", { cause: signal.reason });
  const code = codeOf(error);
  if (code !== undefined) {
    // The SDK's own error carries the request, and so the prompt, to wherever it is logged.
    const cause = error instanceof Error ? error.cause : undefined;
    return new SlipwayError(code, `the role ${role}: ${messageOf(error).replace(gatewayCode, "").trimEnd()}`, {
      cause,
    });
  }
  if (AISDKError.isInstance(error) && !isAboutResponse(error)) return error;
  const text = JSONParseError.isInstance(error) ? error.text : "";
  return new InvalidAnswerError(role, { text, problem: "it is not a model response" }, { cause: error });
}

/** Adds what came of the answer before it failed. */
export function withText(error: unknown, text: string): unknown {
  if (!(error instanceof SlipwayError) || error instanceof AnswerError || text === "") return error;
  return error.code === "aborted" ? error : new AnswerError(error.code, error.message, text, { cause: error.cause });
}

function codeOf(error: unknown): ErrorCode | undefined {
  if (NoOutputGeneratedError.isInstance(error)) return "stream_truncated";
  if (!APICallError.isInstance(error) && !StreamProviderError.isInstance(error)) return undefined;
  const code = gatewayCode.exec(error.message)?.[1];
  if (isErrorCode(code)) return code;
  const { statusCode } = error;
  if (statusCode === undefined) return isTimeout(error.cause) ? "model_timeout" : "model_unreachable";
  // The answer started and could not be read to its end.
  if (statusCode === 200) return "stream_truncated";
  if (statusCode === 429) return "model_rate_limited";
  if (statusCode >= 500) return "model_overloaded";
  return statusCode === 401 || statusCode === 403 ? "model_key_refused" : "model_refused";
}

function isAboutResponse(error: AISDKError): boolean {
  return JSONParseError.isInstance(error) || TypeValidationError.isInstance(error);
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** The gateway puts its code at the end of the message. */
const gatewayCode = /\[([a-z_]+)\]$/;

function isTimeout(cause: unknown): boolean {
  return cause instanceof errors.HeadersTimeoutError || cause instanceof errors.BodyTimeoutError;
}
