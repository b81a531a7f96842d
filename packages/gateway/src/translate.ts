import type { ModelEvent, ModelRequest } from "./conversation.ts";
import type { AgentDialect, Dialect } from "./dialects/dialect.ts";

/** A stream of one dialect becomes one of another, piece by piece. */
export function translateStream(request: ModelRequest, from: Dialect, to: AgentDialect) {
  const reader = from.streamReader(request);
  const writer = to.streamWriter(request);
  let over = false;
  const write = (event: ModelEvent) => {
    over ||= event.type === "stop" || event.type === "failure";
    return writer.write(event);
  };
  return {
    push: (chunk: Uint8Array) => reader.push(chunk).map(write),
    /** What the agent has been told has an end. */
    get over() {
      return over;
    },
  };
}

export function translateWhole(request: ModelRequest, from: Dialect, to: AgentDialect, body: unknown): string {
  return JSON.stringify(to.writeResponse(request, from.readResponse(body, request)));
}
