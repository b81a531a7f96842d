import type { AgentEvent } from "@slipway/contract";
import { z } from "zod";
import { shortText } from "../../system/sizes.ts";

const todoInput = z.object({
  todos: z.array(z.object({ content: z.string(), status: z.enum(["pending", "in_progress", "completed"]) })),
});

const maxEntries = 256;

/** The list that a call of TodoWrite sets. A model writes its input: what is no list is no plan. */
export function planOf(input: unknown): AgentEvent[] {
  const { data } = todoInput.safeParse(input);
  if (data === undefined) return [];
  const entries = data.todos.slice(0, maxEntries);
  return [{ type: "plan", entries: entries.map(({ content, status }) => ({ text: shortText(content), status })) }];
}
