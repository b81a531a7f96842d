import type { ModelEvent, ModelRequest } from "./conversation.ts";
import type { Dialect } from "./dialects/dialect.ts";

/** A stream of one dialect becomes one of another, piece by piece. */
export function translateStream(request: ModelRequest, from: Dialect, to: Dialect) {
  const reader = from.streamReader(request);
  const writer = to.streamWriter(request);
  const write = (events: readonly ModelEvent[]) => events.map((event) => writer.write(event)).join("");
  return {
    push: (chunk: Uint8Array) => write(reader.push(chunk)),
    end: () => write(reader.end()),
  };
}

export function translateWhole(request: ModelRequest, from: Dialect, to: Dialect, body: unknown): string {
  return JSON.stringify(to.writeResponse(request, from.readResponse(body, request)));
}
