import { watch } from "node:fs";
import { createTools } from "../../../keeper/tools/tools.ts";

/** Publishes the directory that is its second argument into the one that is its first, and stops in the middle of it. */
const [, , directory = "", source = ""] = process.argv;
watch(directory, (_, name) => {
  if (name?.endsWith(".new")) process.kill(process.pid, "SIGSTOP");
});
await createTools(directory, { tool: source }).publish(["tool"]);
