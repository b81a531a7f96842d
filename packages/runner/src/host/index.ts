export * from "./start.ts";
export * from "./tools.ts";
