import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { ModelEvent, ModelRequest, Part } from "./conversation.ts";
import type { DialectName } from "./dialect.ts";
import { dialects } from "./index.ts";
import { coalesce, cutAt, modelRequest, plainRequest, readStream, response, writeStream } from "./testing.ts";

const names = Object.keys(dialects) as DialectName[];
const pairs = names.flatMap((from) => names.map((to) => [from, to] as const));
const encode = (text: string) => new TextEncoder().encode(text);
const overTheWire = (body: unknown) => JSON.parse(JSON.stringify(body)) as unknown;

describe.each(names)("%s", (name) => {
  const dialect = dialects[name];

  test("a request that is written and read again is the same, as far as the dialect can say it", () => {
    fc.assert(
      fc.property(modelRequest, (request) => {
        expect(dialect.readRequest(overTheWire(dialect.writeRequest(request)))).toEqual(sayable(name, request));
      }),
    );
  });

  test("a response that is written and read again is the same", () => {
    fc.assert(
      fc.property(response, (events) => {
        const body = overTheWire(dialect.writeResponse(plainRequest, events));
        expect(coalesce(dialect.readResponse(body))).toEqual(coalesce(events));
      }),
    );
  });

  test("a stream that is cut into any pieces and read again is the same", () => {
    fc.assert(
      fc.property(response, fc.array(fc.nat(), { maxLength: 20 }), (events, places) => {
        const pieces = cutAt(encode(writeStream(dialect, events)), places);
        expect(coalesce(readStream(dialect, pieces))).toEqual(coalesce(events));
      }),
    );
  });

  test("a meter that sees the pieces of a stream counts what the model reported", () => {
    fc.assert(
      fc.property(response, fc.array(fc.nat(), { maxLength: 20 }), (events, places) => {
        const meter = dialect.meter();
        for (const piece of cutAt(encode(writeStream(dialect, events)), places)) meter.push(piece);
        expect(meter).toMatchObject({ complete: true, reported: true, failure: undefined, usage: usageOf(events) });
      }),
    );
  });

  test("a meter that sees the pieces of a whole body counts what the model reported", () => {
    fc.assert(
      fc.property(response, fc.array(fc.nat(), { maxLength: 5 }), (events, places) => {
        const meter = dialect.meter();
        const body = JSON.stringify(dialect.writeResponse(plainRequest, events));
        const [last = new Uint8Array(), ...others] = cutAt(encode(body), places).reverse();
        for (const piece of others.reverse()) meter.push(piece);
        if (last.length > 0) expect(meter.complete).toBe(false);
        meter.push(last);
        expect(meter).toMatchObject({ complete: true, reported: true, usage: usageOf(events) });
      }),
    );
  });

  test("a stream that is cut at any byte before its end is never complete", () => {
    fc.assert(
      fc.property(response, (events) => {
        const bytes = encode(writeStream(dialect, events));
        const reader = dialect.streamReader();
        const meter = dialect.meter();
        for (let at = 0; at < bytes.length - 1; at++) {
          const piece = bytes.subarray(at, at + 1);
          meter.push(piece);
          if (meter.complete || [...reader.push(piece)].some(({ type }) => type === "stop"))
            expect.fail(`complete at ${at}`);
        }
      }),
      { numRuns: 20 },
    );
  });
});

test.each(pairs)("a request for %s reaches an endpoint of %s with its conversation", (from, to) => {
  fc.assert(
    fc.property(modelRequest, (request) => {
      const arrived = dialects[from].readRequest(overTheWire(dialects[from].writeRequest(request)));
      const sent = dialects[to].readRequest(overTheWire(dialects[to].writeRequest(arrived)));
      expect(sent).toEqual(sayable(to, sayable(from, request)));
    }),
  );
});

test.each(pairs)("a response of %s reaches a client of %s, streamed", (from, to) => {
  fc.assert(
    fc.property(response, fc.array(fc.nat(), { maxLength: 10 }), (events, places) => {
      const arrived = readStream(dialects[from], cutAt(encode(writeStream(dialects[from], events)), places));
      const read = readStream(dialects[to], [encode(writeStream(dialects[to], arrived))]);
      expect(coalesce(read)).toEqual(coalesce(events));
    }),
  );
});

function usageOf(events: readonly ModelEvent[]) {
  return events.find((event) => event.type === "usage")?.usage;
}

/** What is left of a request in a dialect's words. */
function sayable(name: DialectName, request: ModelRequest): ModelRequest {
  if (name === "anthropic")
    return mapParts(request, (part) => (part.type === "thinking" && part.signature === "" ? [] : [part]));
  const said = mapParts(request, (part) => {
    if (part.type === "tool_result") return [{ ...part, isError: false }];
    if (part.type !== "thinking") return [part];
    if (name === "chat") return [{ ...part, signature: "" }];
    return part.signature === "" ? [] : [part];
  });
  return name === "responses" ? { ...said, stopSequences: [] } : said;
}

function mapParts(request: ModelRequest, map: (part: Part) => Part[]): ModelRequest {
  return { ...request, messages: request.messages.map(({ role, parts }) => ({ role, parts: parts.flatMap(map) })) };
}
