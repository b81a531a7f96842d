import { text } from "node:stream/consumers";
import { type ExecId, sandboxIdSchema } from "@slipway/contract";
import { openProvider } from "@slipway/sandbox/open";
import { readSandboxSettings } from "@slipway/sandbox/settings";

/** `modal-reattach.ts <state directory> <sandbox>`, with ids of execs as standard input: says `done` when it has output of each. */
const [stateDir = "", id = ""] = process.argv.slice(2);
const ids = JSON.parse(await text(process.stdin)) as ExecId[];
const { settings } = readSandboxSettings(process.env);
await using provider = await openProvider({ ...settings, stateDir, environment: process.env });
const sandbox = await provider.get(sandboxIdSchema.parse(id));
await Promise.all(
  ids.map(async (one) => {
    const exec = await sandbox.attach(one);
    for await (const chunk of exec.output()) if (chunk.type === "stdout") break;
    await exec[Symbol.asyncDispose]();
  }),
);
console.log("done");
