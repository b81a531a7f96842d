import { SlipwayError } from "@slipway/contract";
import { APICallError, JSONParseError, TypeValidationError } from "ai";
import { z } from "zod";
import type { FinalEvent } from "../../supervise/supervise.ts";
import { parseJson, shortText } from "../../system/text.ts";
import { failureEvent } from "../program/failure.ts";

/** How a turn ends after an error in the AI SDK's stream. A break after a good status is a truncated answer. */
export function failureOf(error: unknown): FinalEvent {
  const message = error instanceof Error ? error.message : JSON.stringify(error);
  if (error instanceof SlipwayError) return { type: "error", kind: "internal", message: shortText(message) };
  if (!APICallError.isInstance(error)) return failureEvent({ kind: brokenKind(error), message });
  const { statusCode: status, responseBody, cause } = error;
  if (status === undefined) return failureEvent({ kind: "network", message });
  if (status < 300) return failureEvent({ kind: brokenKind(cause), message });
  return failureEvent({ status, message: wordsIn(responseBody) ?? message });
}

/** Extracts an error body's message, or returns the body if its shape is unknown. */
function wordsIn(body: string | undefined): string | undefined {
  return errorBody.safeParse(parseJson(body ?? "")).data?.error.message ?? (body || undefined);
}

const errorBody = z.object({ error: z.object({ message: z.string().min(1) }) });

function brokenKind(error: unknown): "protocol" | "truncated" {
  return JSONParseError.isInstance(error) || TypeValidationError.isInstance(error) ? "protocol" : "truncated";
}
