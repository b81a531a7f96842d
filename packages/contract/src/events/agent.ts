import { z } from "zod";
import { claimedEndSchema } from "../runs/end.ts";
import { usageSchema } from "../runs/models.ts";

const longText = z.string().max(64 * 1024);
const shortText = z.string().max(4096);
const id = z.string().min(1).max(256);

const planEntry = z.strictObject({ text: shortText, status: z.enum(["pending", "in_progress", "completed"]) });

/** The last event of an agent's turn, and of a run. */
export const endedSchema = z.strictObject({ type: z.literal("ended"), end: claimedEndSchema });

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
  endedSchema,
]);
export type AgentEvent = z.output<typeof agentEventSchema>;
