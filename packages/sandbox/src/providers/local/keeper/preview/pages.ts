import type { ServerResponse } from "node:http";
import { type ErrorCode, hasCode } from "@slipway/contract";

export type PageStatus = 400 | 401 | 403 | 413 | 501 | 502 | 503 | 504;

const sentences: Record<PageStatus, string> = {
  400: "This is not a request that the preview takes.",
  401: "This preview needs its access token. Open it with the address that Slipway gave you.",
  403: "This preview does not take requests from other pages.",
  413: "The request is larger than the preview carries.",
  501: "The preview carries no transfer encoding but chunked.",
  502: "Nothing answers on this port of the sandbox. Start the server there, then reload.",
  503: "The sandbox is not running. Start it, then reload.",
  504: "The server in the sandbox did not answer in time.",
};

const notRunning: readonly ErrorCode[] = [
  "sandbox_not_running",
  "sandbox_not_found",
  "sandbox_wrong_state",
  "sandbox_ended",
  "provider_unavailable",
];

/** What a failed connection into a sandbox means to a visitor. */
export function statusOf(error: unknown): PageStatus {
  return notRunning.some((code) => hasCode(error, code)) ? 503 : 502;
}

export function sendPage(response: ServerResponse, status: PageStatus): void {
  if (response.headersSent || response.destroyed) return;
  const body = `<!doctype html><meta charset="utf-8"><title>Slipway preview</title><p>${sentences[status]}</p>\n`;
  response.writeHead(status, {
    "Content-Type": "text/html; charset=utf-8",
    "Content-Length": Buffer.byteLength(body),
    "Content-Security-Policy": "default-src 'none'",
    "Cache-Control": "no-store",
    Connection: "close",
  });
  response.end(body);
}
