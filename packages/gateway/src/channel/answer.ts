import type { ServerResponse } from "node:http";
import type { SlipwayError } from "@slipway/contract";

export function answer(response: ServerResponse, body: object, status = 200): void {
  if (response.headersSent || response.destroyed) return;
  // Node would take the unread rest of the request for the next one.
  if (!response.req.complete) response.setHeader("connection", "close");
  const text = Buffer.from(JSON.stringify(body));
  response.writeHead(status, { "content-type": "application/json", "content-length": text.length }).end(text);
}

/** Writes a refusal. `next` tells the runner where to continue. */
export function answerError(response: ServerResponse, error: SlipwayError, next?: number): void {
  answer(response, { ...error.toJSON(), ...(next === undefined ? {} : { next }) }, error.status);
}
