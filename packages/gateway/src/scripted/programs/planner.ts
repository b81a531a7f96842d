import { withFaults } from "../fault.ts";
import type { ScriptedProgram, Turn } from "../program.ts";
import { sideAnswer } from "../side-call.ts";
import { checksFor } from "./planner-checks.ts";
import { intentFor } from "./planner-intent.ts";
import { planFor, remainingFor } from "./planner-plan.ts";
import {
  contractIn,
  fenced,
  type PlanningQuestion,
  planningQuestionOf,
  planningQuestions,
} from "./planning-questions.ts";

/**
 * Plans any request: an intent in the words of the request, a check for everything it promises, and tasks that serve
 * every criterion. The same question gets the same answer. A question's number orders a fault for it: `[fault:cut @2]`
 * cuts the plan.
 */
export const planner: ScriptedProgram = (request) => {
  const question = planningQuestionOf(request);
  if (question === undefined) return sideAnswer(request);
  // The first prompt contains the request, and so the fault. Later prompts ask for the same again.
  return withFaults(() => ({ object: answers[question](request.prompt) }) satisfies Turn)({
    ...request,
    lastPrompt: request.prompt,
    step: planningQuestions.indexOf(question),
  });
};

const answers: Readonly<Record<PlanningQuestion, (prompt: string) => object>> = {
  intent: (prompt) => intentFor(fenced(prompt, "request") ?? prompt, fenced(prompt, "problems")),
  checks: (prompt) => ({ checks: checksFor(contractIn(prompt)) }),
  plan: (prompt) => ({ tasks: planFor(contractIn(prompt), fenced(prompt, "repository-files") === undefined) }),
  remaining: (prompt) => ({
    tasks: remainingFor(contractIn(prompt), fenced(prompt, "unsatisfied") ?? "", fenced(prompt, "tasks") ?? ""),
  }),
};
