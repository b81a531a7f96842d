export type * from "./ports/bridge.ts";
export * from "./ports/ledger.ts";
export * from "./ports/records.ts";
export * from "./ports/store.ts";
