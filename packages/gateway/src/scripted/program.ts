import type { Usage } from "@slipway/contract";
import type { AnswerSchema, ModelRequest, StopReason } from "../dialects/conversation.ts";

/**
 * Answers as a model would. It keeps nothing between calls: what it says follows from the request alone, so that a
 * retried or resumed conversation goes on where it was.
 */
export type ScriptedProgram = (request: ScriptedRequest) => Turn | Promise<Turn>;

/** A model request as programs see it, the same for every agent and dialect. */
export interface ScriptedRequest {
  readonly model: string;
  readonly system: string;
  /** What the user wrote first, without what the agent adds around it. */
  readonly prompt: string;
  /** What the user wrote last. */
  readonly lastPrompt: string;
  /** How many tool results there are since the last prompt: 0 is the first turn of an answer. */
  readonly step: number;
  /** Names of the tools that the agent offers. */
  readonly tools: readonly string[];
  /** Results of the tools that the turn before called. */
  readonly results: readonly ToolResult[];
  /** The answer is to be an `object` that fits this schema. */
  readonly answerSchema: AnswerSchema | undefined;
  /** The directory that the agent says it works in. */
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
  /** The structured answer: as JSON text, or as the call of the tool that the request demands. */
  readonly object?: unknown;
  /** What is not given is estimated from the bytes. */
  readonly usage?: Partial<Usage>;
  readonly stop?: StopReason;
  /** Between two pieces of a streamed response; without it they come as fast as they are read. */
  readonly paceMs?: number;
  readonly fault?: Fault;
  /** Only the first so many tries of the same request fail; without it, all of them. */
  readonly faultTries?: number;
}

/** What the model does, in no agent's words. It is bound to a tool that the request offers. */
export type Action =
  /** Relative paths are meant from the agent's working directory. */
  | { readonly write: string; readonly content: string }
  | { readonly read: string }
  | { readonly run: string }
  /** A tool by its name, or by the end of a name such as `mcp__slipway__add_tasks`. */
  | { readonly tool: string; readonly input: Readonly<Record<string, unknown>> };

export const namedFaults = [
  /** Accepts the request and says nothing. */
  "hang",
  /** Says half of its answer, then nothing. */
  "hangStream",
  /** Breaks the connection before an answer. */
  "reset",
  /** Breaks the connection after half of the answer. */
  "cut",
  /** Ends the response in good order after half of the answer. */
  "endEarly",
  /** Half of the answer, then what is no JSON. */
  "invalidJson",
  /** The model declines. */
  "refusal",
  /** Half of the answer, then an error of the endpoint's own. */
  "failure",
] as const;

export type Fault =
  | (typeof namedFaults)[number]
  /** An answer with this HTTP status. */
  | { readonly status: number; readonly retryAfterMs?: number };
