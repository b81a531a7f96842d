import type { ServerResponse } from "node:http";
import { type ErrorCode, hasCode, printable } from "@slipway/contract";

/** A page that a visitor sees instead of the app. */
export interface Page {
  readonly status: 400 | 401 | 403 | 404 | 413 | 421 | 501 | 502 | 503 | 504;
  readonly text: string;
  /** By default the page does not reload. */
  readonly refreshSeconds?: number;
}

const texts = {
  400: "The preview cannot handle this request.",
  401: "This preview needs its access token. Open it with the address that Slipway gave you.",
  403: "This preview does not accept requests from other pages.",
  413: "The request exceeds the preview's limit.",
  421: "This preview answers only at the name and port that Slipway gave you.",
  501: "The preview supports only the chunked transfer encoding.",
  502: "Nothing answers on this port of the sandbox. Start the server there, then reload.",
  503: "The sandbox is not running. Start it, then reload.",
  504: "The server in the sandbox did not answer in time.",
} as const;

export function pageOf(status: keyof typeof texts): Page {
  return { status, text: texts[status] };
}

const notRunning: readonly ErrorCode[] = [
  "sandbox_not_running",
  "sandbox_not_found",
  "sandbox_wrong_state",
  "sandbox_ended",
  "provider_unavailable",
];

/** The page for a failed connection into a sandbox. */
export function pageOfFailure(error: unknown): Page {
  return pageOf(notRunning.some((code) => hasCode(error, code)) ? 503 : 502);
}

export function sendPage(response: ServerResponse, { status, text, refreshSeconds }: Page): void {
  if (response.headersSent || response.destroyed) return;
  const shown = printable(text).replace(/[<&]/g, (sign) => (sign === "<" ? "&lt;" : "&amp;"));
  const refresh = refreshSeconds === undefined ? "" : `<meta http-equiv="refresh" content="${refreshSeconds}">`;
  const body = `<!doctype html><meta charset="utf-8">${refresh}<title>Slipway preview</title><pre>${shown}</pre>\n`;
  response.writeHead(status, {
    ...(refreshSeconds !== undefined && { "Retry-After": refreshSeconds }),
    "Content-Type": "text/html; charset=utf-8",
    "Content-Length": Buffer.byteLength(body),
    "Content-Security-Policy": "default-src 'none'",
    "Cache-Control": "no-store",
    Connection: "close",
  });
  response.end(body);
}
