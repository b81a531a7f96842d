import { type Intent, intentSchema, SlipwayError } from "@slipway/contract";
import type { ScriptedRequest } from "../program.ts";
import { isSideCall } from "../side-call.ts";

/** The questions from a request to a plan, in order. */
export const planningQuestions = ["intent", "checks", "plan", "remaining"] as const;
export type PlanningQuestion = (typeof planningQuestions)[number];

/** Recognises a question by the fields of its answer. */
export function planningQuestionOf(request: ScriptedRequest): PlanningQuestion | undefined {
  if (!isSideCall(request) || request.answerSchema === undefined) return undefined;
  const schema = JSON.stringify(request.answerSchema.schema);
  if (schema.includes('"coreValue"')) return "intent";
  if (schema.includes('"proves"')) return "checks";
  if (!schema.includes('"expectedFiles"')) return undefined;
  return fenced(request.prompt, "unsatisfied") === undefined ? "plan" : "remaining";
}

/** Returns the text between `<name mark>` and `</name mark>`. */
export function fenced(prompt: string, name: string): string | undefined {
  return new RegExp(`<${name} ([0-9a-f]{16})>\n([\\s\\S]*?)\n</${name} \\1>`).exec(prompt)?.[2];
}

export function contractIn(prompt: string): Intent {
  try {
    return intentSchema.parse(JSON.parse(fenced(prompt, "contract") ?? ""));
  } catch (cause) {
    throw new SlipwayError("invalid_request", "the prompt has no contract to plan for", { cause });
  }
}
