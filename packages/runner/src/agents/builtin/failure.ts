import { type ClaimedEnd, SlipwayError } from "@slipway/contract";
import { APICallError, JSONParseError, TypeValidationError } from "ai";
import { z } from "zod";
import { claimEnd } from "../../supervise/end.ts";
import { parseJson } from "../../system/text.ts";
import { failureEnd } from "../program/failure.ts";

/** How a turn ends after an error in the AI SDK's stream. A break after a good status is a truncated answer. */
export function failureOf(error: unknown): ClaimedEnd {
  const message = error instanceof Error ? error.message : JSON.stringify(error);
  if (error instanceof SlipwayError) return claimEnd("internal", message);
  if (!APICallError.isInstance(error)) return failureEnd({ reason: brokenReason(error), message });
  const { statusCode: status, responseBody, cause } = error;
  if (status === undefined) return failureEnd({ reason: "network", message });
  if (status < 300) return failureEnd({ reason: brokenReason(cause), message });
  return failureEnd({ status, message: wordsIn(responseBody) ?? message });
}

/** Extracts an error body's message, or returns the body if its shape is unknown. */
function wordsIn(body: string | undefined): string | undefined {
  return errorBody.safeParse(parseJson(body ?? "")).data?.error.message ?? (body || undefined);
}

const errorBody = z.object({ error: z.object({ message: z.string().min(1) }) });

function brokenReason(error: unknown): "protocol" | "truncated" {
  return JSONParseError.isInstance(error) || TypeValidationError.isInstance(error) ? "protocol" : "truncated";
}
