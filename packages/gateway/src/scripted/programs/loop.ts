import type { ScriptedProgram } from "../program.ts";
import { isSideCall, sideAnswer } from "../side-call.ts";

/** Does the same forever. */
export const loop: ScriptedProgram = (request) =>
  isSideCall(request) ? sideAnswer(request) : { text: "Once more.", actions: [{ run: "echo again" }] };
