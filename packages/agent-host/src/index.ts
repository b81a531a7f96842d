export * from "./start.ts";
export * from "./task.ts";
export * from "./tools.ts";
