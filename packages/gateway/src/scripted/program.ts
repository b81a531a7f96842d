import type { Usage } from "@slipway/contract";
import type { AnswerSchema, ModelRequest, StopReason } from "../dialects/conversation.ts";

/**
 * Answers as a model would. It keeps no state: its answer depends on the request alone, so that a retried or resumed
 * conversation continues where it was.
 */
export type ScriptedProgram = (request: ScriptedRequest) => Turn | Promise<Turn>;

/** A model request as programs see it, the same for every agent and dialect. */
export interface ScriptedRequest {
  readonly model: string;
  readonly system: string;
  /** The user's first words, without what the agent adds. */
  readonly prompt: string;
  /** The user's last words. */
  readonly lastPrompt: string;
  /** The number of tool results since the last prompt. 0 is the first turn of an answer. */
  readonly step: number;
  /** The names of the tools that the agent offers. */
  readonly tools: readonly string[];
  /** Results of the tools that the previous turn called. */
  readonly results: readonly ToolResult[];
  /** Set when the answer must be an `object` that fits this schema. */
  readonly answerSchema: AnswerSchema | undefined;
  /** The directory in which the agent says it works. */
  readonly workdir: string | undefined;
  readonly request: ModelRequest;
}

export interface ToolResult {
  readonly tool: string;
  readonly text: string;
  readonly isError: boolean;
}

/** What the model says next. */
export interface Turn {
  readonly text?: string;
  readonly thinking?: string;
  readonly actions?: readonly Action[];
  /** The structured answer, as JSON text or as a call of the required tool. */
  readonly object?: unknown;
  /** Counts that are not given are estimated from the bytes. */
  readonly usage?: Partial<Usage>;
  readonly stop?: StopReason;
  /** The delay between two pieces of a stream. Without it, they come as fast as they are read. */
  readonly paceMs?: number;
  readonly fault?: Fault;
  /** Only this many tries of the same request fail. Without it, all of them. */
  readonly faultTries?: number;
}

/** What the model does, in no agent's terms. It is bound to a tool that the request offers. */
export type Action =
  /** Paths are relative to the agent's working directory. */
  | { readonly write: string; readonly content: string }
  | { readonly read: string }
  | { readonly run: string }
  /** A tool by its name, or by the end of a name such as `mcp__slipway__add_tasks`. */
  | { readonly tool: string; readonly input: Readonly<Record<string, unknown>> };

export const namedFaults = [
  /** Accepts the request and sends nothing. */
  "hang",
  /** Sends half of the answer, then nothing. */
  "hangStream",
  /** Drops the connection before an answer. */
  "reset",
  /** Drops the connection after half of the answer. */
  "cut",
  /** Ends the response cleanly after half of the answer. */
  "endEarly",
  /** Sends half of the answer, then invalid JSON. */
  "invalidJson",
  /** The model declines. */
  "refusal",
  /** Sends half of the answer, then an error of the endpoint. */
  "failure",
] as const;

export type Fault =
  | (typeof namedFaults)[number]
  /** An answer with this HTTP status. */
  | { readonly status: number; readonly retryAfterMs?: number };
