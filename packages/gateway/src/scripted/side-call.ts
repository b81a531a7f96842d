import type { ScriptedRequest, Turn } from "./program.ts";
import { valueForSchema } from "./schema-value.ts";

/**
 * Agents also ask for a title, a summary or a topic. Such a call offers no tools: a program answers it with
 * `sideAnswer` and continues its script in the next call.
 */
export function isSideCall(request: ScriptedRequest): boolean {
  return request.tools.length === 0;
}

/** Returns a harmless answer that fits the request. */
export function sideAnswer(request: ScriptedRequest): Turn {
  if (request.answerSchema) return { object: valueForSchema(request.answerSchema.schema) };
  return { text: "A small task" };
}
