import { duplexPair } from "node:stream";
import { expect, onTestFinished, test } from "vitest";
import { openCall } from "./connection.ts";
import { createFiles } from "./files/files.ts";
import { encodeFrame, frameType } from "./wire.ts";

/** An agent that says what it likes, whatever it is asked. */
function hostileAgent() {
  const [host, agent] = duplexPair();
  onTestFinished(() => {
    host.destroy();
    agent.destroy();
  });
  agent.resume();
  return { agent, dial: async () => host };
}

test("frames without content, too, wait until they are read", async () => {
  const { agent, dial } = hostileAgent();
  using call = await openCall(dial, "l", { p: "/" });
  const frames = Buffer.concat(new Array(10_000).fill(encodeFrame(frameType.entry, Buffer.alloc(0))));
  let sent = 0;
  const turn = () => new Promise((resolve) => setImmediate(resolve));
  for (; sent < 1000; sent++) {
    if (!agent.write(frames)) await turn();
    if (agent.writableLength > 10 * frames.length) break;
  }
  expect(sent).toBeLessThan(1000);
  expect(await call.next()).toMatchObject({ type: frameType.entry });
});

test("a read yields no more than was asked for", async () => {
  const { agent, dial } = hostileAgent();
  const files = createFiles({ dial, workdir: "/w" });
  agent.write(encodeFrame(frameType.done, Buffer.alloc(16)));
  for (let part = 0; part < 100; part++) agent.write(encodeFrame(frameType.data, Buffer.alloc(1000)));
  const parts = files.read("file", { length: 1500 });
  let bytes = 0;
  const reading = (async () => {
    for await (const part of parts) bytes += part.length;
  })();
  await expect(reading).rejects.toThrow(/more/);
  expect(bytes).toBeLessThanOrEqual(1500);
});
