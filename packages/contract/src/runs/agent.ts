import { z } from "zod";
import { usageSchema } from "./models.ts";

/** How an agent ended by its own account or by its limits: nothing is broken. */
export const doneOutcomes = ["completed", "cancelled", "refused", "max_steps", "budget"] as const;
export type DoneOutcome = (typeof doneOutcomes)[number];

/** How an agent failed. */
export const agentErrorKinds = [
  /** The model's endpoint refused the credentials. */
  "auth",
  "rate_limited",
  /** The model's endpoint failed by itself (5xx, overloaded). */
  "overloaded",
  /** The model's endpoint could not be reached, or a connection broke before an answer. */
  "network",
  "model_not_found",
  /** The endpoint refused the request as wrong. */
  "invalid_request",
  /** A response ended before its end; what it said so far is not an answer. */
  "truncated",
  /** The answer could not be read: not JSON, not the protocol. */
  "protocol",
  /** The run took longer than it may. */
  "timeout",
  /** Nothing happened for longer than it may. */
  "stuck",
  /** The same actions with the same results, again and again. */
  "looping",
  /** The agent's program ended without an answer. */
  "crashed",
  /** A conversation that was to be resumed is gone. */
  "session_lost",
  "internal",
] as const;
export type AgentErrorKind = (typeof agentErrorKinds)[number];

const longText = z.string().max(64 * 1024);
const shortText = z.string().max(4096);
const id = z.string().min(1).max(256);

const planEntry = z.strictObject({ text: shortText, status: z.enum(["pending", "in_progress", "completed"]) });

/** What an agent does, in the same words whatever program it is. */
export const agentEventSchema = z.discriminatedUnion("type", [
  z.strictObject({
    type: z.literal("status"),
    status: z.enum(["starting", "thinking", "retrying", "compacting", "idle", "interrupted"]),
    detail: shortText.optional(),
  }),
  z.strictObject({
    type: z.literal("session"),
    session: id,
    model: shortText.optional(),
    version: shortText.optional(),
  }),
  z.strictObject({ type: z.literal("text"), channel: z.enum(["answer", "thinking"]), text: longText }),
  z.strictObject({
    type: z.literal("tool"),
    phase: z.enum(["start", "end"]),
    id,
    name: shortText,
    kind: z.enum(["edit", "execute", "read", "search", "other"]),
    /** At `start`: what it is called with, as JSON text; cut when long. */
    input: longText.optional(),
    /** At `end`: what came out; cut when long. */
    output: longText.optional(),
    ok: z.boolean().optional(),
  }),
  /** From git, not from what the agent says: a shell command that writes a file counts, too. */
  z.strictObject({
    type: z.literal("file_change"),
    path: shortText,
    action: z.enum(["added", "modified", "deleted"]),
  }),
  z.strictObject({ type: z.literal("plan"), entries: z.array(planEntry).max(256) }),
  z.strictObject({ type: z.literal("permission"), id, tool: shortText, input: longText }),
  /** The agent's own count, for comparison: what the gateway meters is the truth. */
  z.strictObject({ type: z.literal("usage"), usage: usageSchema, costUsd: z.number().min(0).optional() }),
  z.strictObject({ type: z.literal("done"), outcome: z.enum(doneOutcomes), text: longText }),
  z.strictObject({ type: z.literal("error"), kind: z.enum(agentErrorKinds), message: shortText }),
]);
export type AgentEvent = z.output<typeof agentEventSchema>;

/** `builtin`, `claude-code`, or `acp:` and the name of an agent that speaks the Agent Client Protocol. */
export const agentNameSchema = z
  .string()
  .regex(/^(builtin|claude-code|acp:[a-z][a-z0-9-]{0,63})$/, "expected builtin, claude-code or acp:<name>");
