import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { createSseReader, writeSse } from "./sse.ts";
import { cutAt, text } from "./testing.ts";

const encode = (stream: string) => new TextEncoder().encode(stream);
const readAll = (stream: string) => createSseReader().push(encode(stream));

describe("what a stream of events is", () => {
  const table: [string, string, string[]][] = [
    ["lines that end with a line feed", "data: a\n\ndata: b\n\n", ["a", "b"]],
    ["lines that end with both", "data: a\r\n\r\ndata: b\r\n\r\n", ["a", "b"]],
    ["lines that end with a carriage return", "data: a\r\rdata: b\r\r\n", ["a", "b"]],
    ["data without the space", "data:a\n\n", ["a"]],
    ["data with a space of its own", "data:  a\n\n", [" a"]],
    ["data of several lines", "data: a\ndata:\ndata: b\n\n", ["a\n\nb"]],
    ["comments and other fields", ": ping\nevent: x\nid: 1\nretry: 5\ndata: a\n\n: ping\n\n", ["a"]],
    ["a byte order mark", "\uFEFFdata: a\n\n", ["a"]],
    ["fields that only begin alike", "database: x\n\n", []],
    ["an event without its blank line", "data: a\n\ndata: b\n", ["a"]],
    ["a line without its end", "data: a", []],
    ["nothing", "\n\n\n", []],
  ];
  test.each(table)("%s", (_name, stream, events) => {
    expect(readAll(stream)).toEqual(events);
  });
});

test("events are the same wherever the stream is cut, be it inside a character or a line's end", () => {
  const lineEnds = fc.constantFrom("\n", "\r\n");
  fc.assert(
    fc.property(
      fc.array(text, { maxLength: 5 }),
      lineEnds,
      fc.array(fc.nat(), { maxLength: 20 }),
      (texts, end, places) => {
        const stream = texts.map((one) => writeSse({ one }, "event")).join("");
        const reader = createSseReader();
        const pieces = cutAt(encode(stream.replaceAll("\n", end)), places);
        expect(pieces.flatMap((piece) => reader.push(piece))).toEqual(texts.map((one) => JSON.stringify({ one })));
      },
    ),
  );
});

test("a line or an event that does not end is refused before it fills the memory", () => {
  const line = createSseReader({ maxChars: 1000 });
  expect(() => line.push(encode(`data: ${"a".repeat(1000)}`))).toThrow(
    expect.objectContaining({ code: "invalid_answer" }),
  );
  const event = createSseReader({ maxChars: 1000 });
  expect(() => event.push(encode("data: 0123456789\n".repeat(200)))).toThrow(
    expect.objectContaining({ code: "invalid_answer" }),
  );
  const stream = createSseReader({ maxChars: 1000 });
  expect(stream.push(encode("data: 0123456789\n\n".repeat(200)))).toHaveLength(200);
});
