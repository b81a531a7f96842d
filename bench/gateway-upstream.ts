import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { json } from "node:stream/consumers";

/**
 * An endpoint that streams prepared answers as fast as they are taken. The request's `metadata.user_id` says what: `short`,
 * `long`, or `together`, which waits until 500 are under way. `GET` answers what all answers to requests with a key, which
 * are the gateway's, have reported together.
 */
const together = 500;
const longBytes = 64 * 1024 * 1024;

const reported = { requests: 0, usage: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 } };
let waiting: (() => void)[] = [];

const words = event("content_block_delta", { index: 0, delta: { type: "text_delta", text: "some words of it " } });
const fewWords = words.repeat(20);
const manyWords = Buffer.from(words.repeat(450));

const server = createServer(async (request, response) => {
  if (request.method === "GET") return void response.end(JSON.stringify(reported));
  const { metadata } = (await json(request)) as { metadata: { user_id: string } };
  const usage = nextUsage(request.headers["x-api-key"] !== undefined);
  response.writeHead(200, { "content-type": "text/event-stream" });
  response.write(head(usage));
  if (metadata.user_id === "long") await writeLong(response);
  else response.write(fewWords);
  if (metadata.user_id === "together") await allTogether();
  response.end(tail(usage));
});
server.listen(0, "127.0.0.1", () =>
  process.send?.({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }),
);

async function writeLong(response: ServerResponse): Promise<void> {
  for (let written = 0; written < longBytes; written += manyWords.length) {
    if (!response.write(manyWords)) await once(response, "drain");
  }
}

async function allTogether(): Promise<void> {
  await new Promise<void>((resolve) => {
    waiting.push(resolve);
    if (waiting.length < together) return;
    for (const release of waiting) release();
    waiting = [];
  });
}

type Usage = typeof reported.usage;

function nextUsage(counts: boolean): Usage {
  const n = reported.requests;
  const usage = { input: 100 + n, output: 40 + (n % 7), cacheRead: n % 11, cacheWrite: n % 5 };
  if (!counts) return usage;
  reported.requests++;
  for (const kind of ["input", "output", "cacheRead", "cacheWrite"] as const) reported.usage[kind] += usage[kind];
  return usage;
}

function head({ input, cacheRead, cacheWrite }: Usage): string {
  const cache = { cache_read_input_tokens: cacheRead, cache_creation_input_tokens: cacheWrite };
  const message = { id: "msg_1", type: "message", role: "assistant", model: "model", content: [] };
  return (
    event("message_start", { message: { ...message, usage: { input_tokens: input, ...cache, output_tokens: 1 } } }) +
    event("content_block_start", { index: 0, content_block: { type: "text", text: "" } })
  );
}

function tail({ output }: Usage): string {
  return (
    event("content_block_stop", { index: 0 }) +
    event("message_delta", {
      delta: { stop_reason: "end_turn", stop_sequence: null },
      usage: { output_tokens: output },
    }) +
    event("message_stop", {})
  );
}

function event(type: string, fields: object): string {
  return `event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`;
}
