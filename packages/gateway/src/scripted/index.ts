export { faultOf, type OrderedFault, withFaults } from "./fault.ts";
export type { Action, Fault, ScriptedProgram, ScriptedRequest, ToolResult, Turn } from "./program.ts";
export { demo } from "./programs/demo.ts";
export { echo } from "./programs/echo.ts";
export { loop } from "./programs/loop.ts";
export { team } from "./programs/team.ts";
export { valueForSchema } from "./schema-value.ts";
export { type ScriptedModel, type ScriptedModelOptions, startScriptedModel } from "./server.ts";
export { isSideCall, sideAnswer } from "./side-call.ts";
