export { startRestate } from "./keep-restate.ts";
export { connectRestate } from "./restate.ts";
