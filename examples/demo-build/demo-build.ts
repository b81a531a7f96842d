import { SlipwayError } from "@slipway/contract";
import {
  isSideCall,
  type PlanningQuestion,
  planningQuestionOf,
  type ScriptedProgram,
  sideAnswer,
} from "@slipway/gateway/scripted";
import { agentTurn } from "./agent.ts";
import { checks } from "./checks.ts";
import { intent } from "./intent.ts";
import { tasks } from "./plan.ts";

/**
 * Plans and builds one app, whatever the request: shopping lists that people share. It answers for the models of all
 * roles. Its agents write the app's real files, and not everything goes well: two tasks change the same lines, and one
 * task fails before it succeeds.
 */
export const demoBuild: ScriptedProgram = (request) => {
  const question = planningQuestionOf(request);
  if (question !== undefined) return { object: answers[question]() };
  return isSideCall(request) ? sideAnswer(request) : agentTurn(request);
};

const answers: Readonly<Record<PlanningQuestion, () => object>> = {
  intent: () => intent,
  checks: () => ({ checks }),
  plan: () => ({ tasks }),
  remaining: () => {
    throw new SlipwayError("invalid_request", "the demo has no tasks beyond those of its plan");
  },
};
