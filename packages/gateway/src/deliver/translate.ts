import type { ModelRequest } from "../dialects/conversation.ts";
import type { AgentDialect, Dialect } from "../dialects/dialect.ts";

/** Translates a stream from one dialect into another, piece by piece. */
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
    /** The agent has received the end of the answer. */
    get over() {
      return over;
    },
  };
}

export function translateWhole(request: ModelRequest, from: Dialect, to: AgentDialect, body: unknown): string {
  return JSON.stringify(to.writeResponse(request, from.readResponse(body, request)));
}
