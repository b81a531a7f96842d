import { appendFileSync, existsSync, readFileSync } from "node:fs";
import { flushCompileCache } from "node:module";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as delay } from "node:timers/promises";
import { openChannel } from "./channel.ts";
import { ended, note } from "./testing/events.ts";
import { createTransport } from "./transport.ts";

/**
 * A runner that counts: it says each number once, also when it was killed and started again, until its standard input says
 * "stop". It writes down what the host tells it.
 */
const [socketPath = "", token = "", directory = ""] = process.argv.slice(2);
const path = join(directory, "events.jsonl");
const kept = existsSync(path) ? readFileSync(path, "utf8").split("\n").slice(0, -1) : [];

const transport = createTransport({ socketPath, token });
await using channel = await openChannel({ transport, directory, instance: crypto.randomUUID() });
let isStopped = false;
createInterface({ input: process.stdin }).once("line", () => {
  isStopped = true;
});
await channel.hello();
void takeControls().catch(() => undefined);
console.log("up");
// A process that is killed leaves nothing compiled to the next one, unless it does so before.
flushCompileCache();
let number = kept.length;
for (; !isStopped; number++) {
  await channel.emit(note(String(number)));
  if (number % 4 === 0) await delay(1);
}
await channel.emit(ended);
await channel.flush();
console.log(number);
process.exit(0);

async function takeControls(): Promise<void> {
  for await (const { sequence } of channel.controls(new AbortController().signal)) {
    appendFileSync(join(directory, "handled"), `${sequence}\n`);
  }
}
