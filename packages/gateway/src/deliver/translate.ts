import type { ModelRequest } from "../dialects/conversation.ts";
import type { AgentDialect, Dialect } from "../dialects/dialect.ts";

/** A stream of one dialect becomes one of another, piece by piece. */
export function translateStream(request: ModelRequest, from: Dialect, to: AgentDialect) {
  const reader = from.streamReader(request);
  const writer = to.streamWriter(request);
  let over = false;
  return {
    *push(chunk: Uint8Array): Iterable<string> {
      for (const event of reader.push(chunk)) {
        over ||= event.type === "stop" || event.type === "failure";
        yield writer.write(event);
      }
    },
    /** What the agent has been told has an end. */
    get over() {
      return over;
    },
  };
}

export function translateWhole(request: ModelRequest, from: Dialect, to: AgentDialect, body: unknown): string {
  return JSON.stringify(to.writeResponse(request, from.readResponse(body, request)));
}
