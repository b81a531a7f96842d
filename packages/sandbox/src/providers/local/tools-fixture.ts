import { createTools } from "./tools.ts";

/** Publishes the directory that is its second argument into the one that is its first; a test kills it. */
const [, , directory = "", source = ""] = process.argv;
await createTools(directory, { tool: source }).publish(["tool"]);
