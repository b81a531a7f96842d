import type { BuildId, OutgoingMessage } from "@slipway/contract";
import { openDatabase } from "../../database/open.ts";
import { openBridge } from "../open.ts";

/** A process of its own that publishes `count` messages, and says each key on its output once it is acknowledged. */
const [file = "", url = "", build = "", from = "", count = ""] = process.argv.slice(2);
await using database = openDatabase({ url: `file:${file}` });
const bridge = await openBridge({ database, redis: { url }, clock: { now: Date.now } });
for (let n = 0; n < Number(count); n++) {
  const key = `${from}:${n}`;
  const message: OutgoingMessage = { topic: "progress", key, from, payload: { phase: "build", text: key } };
  await bridge.publish(build as BuildId, message);
  process.stdout.write(`${key}\n`);
}
await bridge.close();
