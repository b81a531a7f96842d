export * from "./input.ts";
export * from "./project.ts";
export * from "./provider.ts";
export * from "./restricted.ts";
export * from "./run.ts";
