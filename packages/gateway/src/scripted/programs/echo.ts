import { withFaults } from "../fault.ts";
import type { ScriptedProgram } from "../program.ts";
import { sideAnswer } from "../side-call.ts";

/** Repeats the last prompt, or returns an object if the request asks for one. */
export const echo: ScriptedProgram = withFaults((request) =>
  request.answerSchema ? sideAnswer(request) : { text: request.lastPrompt },
);
