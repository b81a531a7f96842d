export type * from "./ports/bridge.ts";
