import type { IncomingMessage } from "node:http";
import { type RunId, SlipwayError } from "@slipway/contract";
import type { RunTokens } from "./run-tokens.ts";

/** Returns the run that sends a request. `connected` is the run whose sandbox owns the connection. */
export function identify(request: IncomingMessage, tokens: RunTokens, connected: RunId | undefined): RunId {
  const token = tokenOf(request);
  if (token === undefined) {
    if (connected !== undefined) return connected;
    throw new SlipwayError("run_token_invalid", "No run token. Send it as a bearer token or as x-api-key.");
  }
  const run = tokens.verify(token);
  if (connected === undefined || connected === run) return run;
  throw new SlipwayError("run_token_invalid", "the run token belongs to another run");
}

export function tokenOf({ headers }: IncomingMessage): string | undefined {
  const bearer = /^Bearer +(\S+)$/i.exec(headers.authorization ?? "")?.[1];
  if (bearer !== undefined) return bearer;
  const key = headers["x-api-key"] ?? headers["x-goog-api-key"];
  return typeof key === "string" ? key : undefined;
}
