export * from "./errors.ts";
export * from "./events.ts";
export * from "./ids.ts";
export * from "./network.ts";
export * from "./sandbox.ts";
