import { type Intent, intentSchema, SlipwayError } from "@slipway/contract";
import { withFaults } from "../fault.ts";
import type { ScriptedProgram, ScriptedRequest, Turn } from "../program.ts";
import { isSideCall, sideAnswer } from "../side-call.ts";
import { checksFor } from "./planner-checks.ts";
import { intentFor } from "./planner-intent.ts";
import { planFor, remainingFor } from "./planner-plan.ts";

/** The questions from a request to a plan, by the number that orders a fault for one of them: `[fault:cut @2]` cuts the plan. */
const questions = ["intent", "checks", "plan", "remaining"] as const;
type Question = (typeof questions)[number];

/**
 * Plans whatever is asked for: an intent from the words of the request, a check for all that it promises, and tasks that
 * serve every criterion. What is asked again gets the same answer.
 */
export const planner: ScriptedProgram = (request) => {
  const question = questionOf(request);
  if (question === undefined) return sideAnswer(request);
  // The first prompt holds the request's words, and with them the fault; what follows asks for the same again.
  return withFaults(() => ({ object: answers[question](request.prompt) }) satisfies Turn)({
    ...request,
    lastPrompt: request.prompt,
    step: questions.indexOf(question),
  });
};

const answers: Readonly<Record<Question, (prompt: string) => object>> = {
  intent: (prompt) => intentFor(fenced(prompt, "request") ?? prompt, fenced(prompt, "problems")),
  checks: (prompt) => ({ checks: checksFor(contractIn(prompt)) }),
  plan: (prompt) => ({ tasks: planFor(contractIn(prompt), fenced(prompt, "repository-files") === undefined) }),
  remaining: (prompt) => ({
    tasks: remainingFor(contractIn(prompt), fenced(prompt, "unsatisfied") ?? "", fenced(prompt, "tasks") ?? ""),
  }),
};

/** By the fields that the answer is to have. */
function questionOf(request: ScriptedRequest): Question | undefined {
  if (!isSideCall(request) || request.answerSchema === undefined) return undefined;
  const schema = JSON.stringify(request.answerSchema.schema);
  if (schema.includes('"coreValue"')) return "intent";
  if (schema.includes('"proves"')) return "checks";
  if (!schema.includes('"expectedFiles"')) return undefined;
  return fenced(request.prompt, "unsatisfied") === undefined ? "plan" : "remaining";
}

/** The text between `<name mark>` and `</name mark>`. */
function fenced(prompt: string, name: string): string | undefined {
  return new RegExp(`<${name} ([0-9a-f]{16})>\n([\\s\\S]*?)\n</${name} \\1>`).exec(prompt)?.[2];
}

function contractIn(prompt: string): Intent {
  try {
    return intentSchema.parse(JSON.parse(fenced(prompt, "contract") ?? ""));
  } catch (cause) {
    throw new SlipwayError("invalid_request", "the prompt has no contract to plan for", { cause });
  }
}
