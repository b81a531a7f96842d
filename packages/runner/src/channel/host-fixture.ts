import { flushCompileCache } from "node:module";
import { runIdSchema } from "@slipway/contract";
import { startTestHost } from "./testing/host.ts";

/** The host's side as a process of its own, on the directory and for the run that are its arguments; tests kill it. */
await startTestHost(process.argv[2] ?? "", runIdSchema.parse(process.argv[3]));
console.log("up");
// A process that is killed leaves nothing compiled to the next one, unless it does so before.
flushCompileCache();
