import { withFaults } from "../fault.ts";
import type { ScriptedProgram } from "../program.ts";
import { sideAnswer } from "../side-call.ts";

/** Says what it was last told, or gives an object where one is asked for. */
export const echo: ScriptedProgram = withFaults((request) =>
  request.answerSchema ? sideAnswer(request) : { text: request.lastPrompt },
);
