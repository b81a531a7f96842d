export * from "./agent.ts";
export * from "./errors.ts";
export * from "./events.ts";
export * from "./ids.ts";
export * from "./models.ts";
export * from "./network.ts";
export * from "./run.ts";
export * from "./sandbox.ts";
