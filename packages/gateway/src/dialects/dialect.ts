import type { SlipwayError, Usage } from "@slipway/contract";
import type { ModelEvent, ModelRequest, StopReason } from "./conversation.ts";

/** Dialects that endpoints speak. */
export type DialectName = "anthropic" | "chat" | "responses";
/** Dialects that agents speak. */
export type AgentDialectName = DialectName | "google";

/** One vendor's wire format, as agents speak it to the gateway. */
export interface AgentDialect {
  readonly name: AgentDialectName;
  /** Fails with `invalid_request` naming the field. Unknown fields are ignored. */
  readRequest(body: unknown): ModelRequest;
  writeResponse(request: ModelRequest, events: readonly ModelEvent[]): Record<string, unknown>;
  /** Writes a response as it arrives. */
  streamWriter(request: ModelRequest): StreamWriter;
  /** Returns a refusal's body in the shape that this vendor's clients read. */
  writeError(error: SlipwayError): Record<string, unknown>;
  /** Ends a started stream so that clients see a failure, never an end. */
  writeStreamError(error: SlipwayError): string;
}

/** One vendor's wire format in both directions: the gateway also speaks it to endpoints. */
export interface Dialect extends AgentDialect {
  readonly name: DialectName;
  /** Below the endpoint's base address: `/v1/messages`, `/v1/chat/completions`, `/v1/responses`. */
  readonly path: string;
  writeRequest(request: ModelRequest): Record<string, unknown>;
  /** Reads a whole response body. Fails with `invalid_answer`. The request tells which tools take free text. */
  readResponse(body: unknown, request?: ModelRequest): ModelEvent[];
  /** Reads a streamed response piece by piece. A line that is not JSON fails with `invalid_answer`. */
  streamReader(request?: ModelRequest): StreamReader;
  /** Counts a response that passes through unchanged, streamed or whole, at little cost per byte. Never throws. */
  meter(): Meter;
}

export interface StreamReader {
  /** Yields what precedes a fault in the chunk, then throws. Ignores an event that never becomes whole: it was cut. */
  push(chunk: Uint8Array): Iterable<ModelEvent>;
}

export interface StreamWriter {
  /** Send each text separately: some clients notice a failure only at the start of a piece. */
  write(event: ModelEvent): string;
}

export interface Meter {
  push(chunk: Uint8Array): void;
  readonly usage: Usage;
  /** The endpoint has reported the final usage. Until then the output in `usage` is provisional. */
  readonly reported: boolean;
  /** The response reached its end. A stream that ends without it was cut. */
  readonly complete: boolean;
  /** Set when the response is complete. */
  readonly stopReason: StopReason | undefined;
  /** The endpoint's own failure within a stream that started well. */
  readonly failure: { readonly status: number; readonly message: string } | undefined;
  /** Estimated output tokens so far, for the budget. Never the bill while `usage` is known. */
  readonly estimatedOutputTokens: number;
}
