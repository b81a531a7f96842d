export * from "./pipeline.ts";
export type * from "./ports/bridge.ts";
export * from "./ports/ledger.ts";
export type * from "./ports/models.ts";
export * from "./ports/records.ts";
export type * from "./ports/repository.ts";
export * from "./ports/store.ts";
export * from "./ports/work.ts";
