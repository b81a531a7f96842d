import { SlipwayError } from "@slipway/contract";
import type { ModelEvent, ModelRequest } from "../dialects/conversation.ts";
import type { AgentDialect } from "../dialects/dialect.ts";
import { codeOfStatus } from "../send/retry.ts";
import type { Fault, ScriptedRequest, Turn } from "./program.ts";
import { turnEvents } from "./turn-events.ts";

/** What goes over the connection for one turn. */
export interface Output {
  /** Undefined: not even headers. */
  readonly head: { readonly status: number; readonly headers: Readonly<Record<string, string>> } | undefined;
  readonly pieces: readonly string[];
  /** `silence` stops and leaves the connection open. `break` drops it. */
  readonly ending: "end" | "silence" | "break";
}

const unwilling = "I cannot help with that.";
const interrupted = "This answer does not come to its end.";

export function outputOf(dialect: AgentDialect, scripted: ScriptedRequest, turn: Turn): Output {
  const { fault } = turn;
  if (fault === "hang") return { head: undefined, pieces: [], ending: "silence" };
  if (fault === "reset") return { head: undefined, pieces: [], ending: "break" };
  if (typeof fault === "object") return errorOutput(dialect, statusError(fault.status), fault);
  const { request } = scripted;
  const events = turnEvents(scripted, sayable(turn, fault));
  const ending = fault === "cut" ? "break" : fault === "hangStream" ? "silence" : "end";
  if (request.stream) {
    const head = { status: 200, headers: { "content-type": "text/event-stream", "cache-control": "no-cache" } };
    return { head, pieces: streamPieces(dialect, request, events, fault), ending };
  }
  if (fault === "failure") return errorOutput(dialect, statusError(529));
  const body = JSON.stringify(dialect.writeResponse(request, events));
  const pieces = [isCutShort(fault) ? body.slice(0, body.length / 2) : body];
  return { head: { status: 200, headers: { "content-type": "application/json" } }, pieces, ending };
}

/** An error in the dialect's shape. */
export function errorOutput(
  dialect: AgentDialect,
  error: SlipwayError,
  { status = error.status, retryAfterMs }: { readonly status?: number; readonly retryAfterMs?: number } = {},
): Output {
  const headers = {
    "content-type": "application/json",
    ...(retryAfterMs !== undefined && {
      "retry-after": String(Math.ceil(retryAfterMs / 1000)),
      "retry-after-ms": String(retryAfterMs),
    }),
  };
  return { head: { status, headers }, pieces: [JSON.stringify(dialect.writeError(error))], ending: "end" };
}

function streamPieces(
  dialect: AgentDialect,
  request: ModelRequest,
  events: readonly ModelEvent[],
  fault: Fault | undefined,
): string[] {
  const writer = dialect.streamWriter(request);
  const said = isCutShort(fault) ? events.slice(0, Math.ceil(events.length / 2)) : events;
  const pieces = said.map((event) => writer.write(event));
  if (fault === "invalidJson") pieces.push('data: {"type": "cont\n\n');
  if (fault === "failure") pieces.push(dialect.writeStreamError(statusError(529)));
  // A dialect need not have words for every event.
  return pieces.filter((piece) => piece !== "");
}

function isCutShort(fault: Fault | undefined): boolean {
  return fault !== undefined && fault !== "refusal";
}

/** A refusal has its own words. A fault in the middle of an answer needs an answer. */
function sayable(turn: Turn, fault: Fault | undefined): Turn {
  if (fault === "refusal") return { text: unwilling, stop: "refusal", ...(turn.usage && { usage: turn.usage }) };
  const isSilent = !turn.text && !turn.thinking && !turn.actions?.length && turn.object === undefined;
  return isCutShort(fault) && isSilent ? { ...turn, text: interrupted } : turn;
}

function statusError(status: number): SlipwayError {
  return new SlipwayError(codeOfStatus(status), `scripted: the endpoint answers with status ${status}`);
}
