import type { ServerResponse } from "node:http";
import type { SlipwayError } from "@slipway/contract";

export function answer(response: ServerResponse, body: object, status = 200): void {
  if (response.headersSent || response.destroyed) return;
  // What is left of a request that was not read to its end would be taken for the next one.
  if (!response.req.complete) response.setHeader("connection", "close");
  const text = Buffer.from(JSON.stringify(body));
  response.writeHead(status, { "content-type": "application/json", "content-length": text.length }).end(text);
}

/** A refusal. `next` tells a runner where to go on. */
export function answerError(response: ServerResponse, error: SlipwayError, next?: number): void {
  answer(response, { ...error.toJSON(), ...(next === undefined ? {} : { next }) }, error.status);
}
