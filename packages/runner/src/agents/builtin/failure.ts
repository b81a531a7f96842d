import { SlipwayError } from "@slipway/contract";
import { APICallError, JSONParseError, TypeValidationError } from "ai";
import type { FinalEvent } from "../../supervise.ts";
import { failureEvent } from "../program/failure.ts";

/** How a turn ends by an error. `begun`: some of the model's answer had come. */
export function failureOf(error: unknown, begun: boolean): FinalEvent {
  const message = error instanceof Error ? error.message : JSON.stringify(error);
  if (error instanceof SlipwayError) return { type: "error", kind: "internal", message: message.slice(0, 4_096) };
  if (APICallError.isInstance(error)) {
    const { statusCode: status, responseBody } = error;
    return failureEvent({
      status,
      kind: status === undefined ? "network" : undefined,
      message: responseBody || message,
    });
  }
  const unreadable = JSONParseError.isInstance(error) || TypeValidationError.isInstance(error);
  return failureEvent({ kind: unreadable ? "protocol" : begun ? "truncated" : "network", message });
}
