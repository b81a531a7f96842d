import type { SlipwayError, Usage } from "@slipway/contract";
import type { ModelEvent, ModelRequest, StopReason } from "./conversation.ts";

/** What endpoints speak. */
export type DialectName = "anthropic" | "chat" | "responses";
/** What agents speak. */
export type AgentDialectName = DialectName | "google";

/** One vendor's wire format, as agents speak it to the gateway. */
export interface AgentDialect {
  readonly name: AgentDialectName;
  /** Fails with `invalid_request` naming the field. Unknown fields are ignored. */
  readRequest(body: unknown): ModelRequest;
  writeResponse(request: ModelRequest, events: readonly ModelEvent[]): Record<string, unknown>;
  /** Writes a response as it comes. */
  streamWriter(request: ModelRequest): StreamWriter;
  /** The body of a refusal, in the shape that this vendor's clients read. */
  writeError(error: SlipwayError): Record<string, unknown>;
  /** Ends a stream that has begun so that clients see a failure, never an end. */
  writeStreamError(error: SlipwayError): string;
}

/** One vendor's wire format, in both directions: the gateway speaks it to endpoints, too. */
export interface Dialect extends AgentDialect {
  readonly name: DialectName;
  /** Below the endpoint's base address: `/v1/messages`, `/v1/chat/completions`, `/v1/responses`. */
  readonly path: string;
  writeRequest(request: ModelRequest): Record<string, unknown>;
  /** A whole response body; fails with `invalid_answer`. The request tells which tools take free text. */
  readResponse(body: unknown, request?: ModelRequest): ModelEvent[];
  /** Reads a streamed response piece by piece. A line that is no JSON fails with `invalid_answer`. */
  streamReader(request?: ModelRequest): StreamReader;
  /** Counts a response that passes through unchanged, streamed or whole, at little cost per byte. It never throws. */
  meter(): Meter;
}

export interface StreamReader {
  /** What comes before a fault in the chunk is there before it throws. An event that is never whole was cut, and means nothing. */
  push(chunk: Uint8Array): Iterable<ModelEvent>;
}

export interface StreamWriter {
  /** Each text goes out by itself: some clients see a failure only where nothing is before it in the same piece. */
  write(event: ModelEvent): string;
}

export interface Meter {
  push(chunk: Uint8Array): void;
  readonly usage: Usage;
  /** The endpoint has said what the whole response came to; until then the output in `usage` is not the last word. */
  readonly reported: boolean;
  /** The response said that it is over. Without it a stream that ended was cut. */
  readonly complete: boolean;
  /** Of a response that is complete. */
  readonly stopReason: StopReason | undefined;
  /** The endpoint's own failure inside a stream that began well. */
  readonly failure: { readonly status: number; readonly message: string } | undefined;
  /** Tokens that the output so far is estimated to have, for the budget; never the bill while `usage` is known. */
  readonly estimatedOutputTokens: number;
}
