import process from "node:process";
import { startRestate } from "./keep-restate.ts";
import { openDurableLoop } from "./loop.ts";
import { connectRestate } from "./restate.ts";
import { anHour } from "./testing.ts";

/**
 * `fixture.ts keep <directory>` starts a Restate and tells its pid and key. `fixture.ts loop <name> <ingress> <admin> <key>`
 * is a server that tells of each tick. Both stay until they are killed.
 */
const [, , mode, ...args] = process.argv;
const tell = (value: unknown) => process.stdout.write(`${JSON.stringify(value)}\n`);
if (mode === "keep") {
  const { pid, identityKey, ingressUrl } = await startRestate({ directory: args[0] ?? "" });
  tell({ pid, identityKey, ingressUrl });
} else {
  const [name = "", url = "", adminUrl, identityKey] = args;
  await openDurableLoop({
    restate: await connectRestate({ url, adminUrl, identityKey }),
    name,
    async tick(build, by, bell) {
      tell({ build, ...by, bell });
      return anHour;
    },
  });
  tell("open");
}
setInterval(() => undefined, 1_000);
