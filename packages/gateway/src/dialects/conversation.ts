import type { Usage } from "@slipway/contract";

/** A model request in no vendor's format. What a dialect cannot express is left out, never invented. */
export interface ModelRequest {
  readonly model: string;
  readonly system: string;
  readonly messages: readonly Message[];
  readonly tools: readonly ToolDefinition[];
  readonly toolChoice: "auto" | "none" | "required" | { readonly name: string };
  /** Undefined: as long as the model can. */
  readonly maxOutputTokens: number | undefined;
  readonly temperature: number | undefined;
  readonly stopSequences: readonly string[];
  readonly stream: boolean;
  /** The answer must be JSON that fits this schema. */
  readonly answerSchema: AnswerSchema | undefined;
}

export interface AnswerSchema {
  readonly name: string;
  readonly schema: Readonly<Record<string, unknown>>;
}

export interface Message {
  readonly role: "user" | "assistant";
  readonly parts: readonly Part[];
}

export type Part =
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "thinking"; readonly text: string; readonly signature: string }
  | { readonly type: "image"; readonly mediaType: string; readonly base64: string }
  | { readonly type: "image_url"; readonly url: string }
  /** `input` is JSON text as the model wrote it, or free text for a tool with `freeText`. */
  | { readonly type: "tool_call"; readonly id: string; readonly name: string; readonly input: string }
  | { readonly type: "tool_result"; readonly id: string; readonly text: string; readonly isError: boolean };

export interface ToolDefinition {
  readonly name: string;
  readonly description: string;
  readonly schema: Readonly<Record<string, unknown>>;
  /** Takes plain text instead of JSON (a `custom` tool of the responses dialect). */
  readonly freeText?: boolean;
  /** How the responses dialect names a tool in a group. `name` joins the two. */
  readonly grouped?: { readonly namespace: string; readonly name: string };
}

/** Why a model stopped. */
export type StopReason = "end" | "tool_call" | "max_tokens" | "stop_sequence" | "refusal";

/** A response as it arrives. Without `stop` it is truncated, whatever came before. */
export type ModelEvent =
  | { readonly type: "start"; readonly id: string; readonly model: string }
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "thinking"; readonly text: string; readonly signature?: string }
  | { readonly type: "tool_start"; readonly id: string; readonly name: string }
  /** For the tool call that started last. */
  | { readonly type: "tool_input"; readonly text: string }
  /** Totals so far. A later one replaces an earlier one. */
  | { readonly type: "usage"; readonly usage: Usage }
  | { readonly type: "stop"; readonly reason: StopReason }
  /** The endpoint itself reports a failed response. */
  | { readonly type: "failure"; readonly status: number; readonly message: string };
