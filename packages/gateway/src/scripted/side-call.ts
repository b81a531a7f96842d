import type { ScriptedRequest, Turn } from "./program.ts";
import { valueForSchema } from "./schema-value.ts";

/**
 * Agents ask for more than the work: for a title, a summary, a topic. Such a call offers no tools, so that a program that
 * acts answers it with `sideAnswer` and goes on with its script in the next one.
 */
export function isSideCall(request: ScriptedRequest): boolean {
  return request.tools.length === 0;
}

/** A harmless answer that fits what is asked for. */
export function sideAnswer(request: ScriptedRequest): Turn {
  if (request.answerSchema) return { object: valueForSchema(request.answerSchema.schema) };
  return { text: "A small task" };
}
