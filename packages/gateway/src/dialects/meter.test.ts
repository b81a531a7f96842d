import { describe, expect, test } from "vitest";
import type { ModelEvent } from "./conversation.ts";
import type { Dialect, DialectName } from "./dialect.ts";
import { dialects } from "./index.ts";
import { writeStream } from "./testing.ts";

const names = Object.keys(dialects) as DialectName[];
const encode = (text: string) => new TextEncoder().encode(text);
const usage = { input: 100, output: 50, cacheRead: 20, cacheWrite: 10 };

function metered(dialect: Dialect, ...pieces: string[]) {
  const meter = dialect.meter();
  for (const piece of pieces) meter.push(encode(piece));
  return meter;
}

function saying(text: string): ModelEvent[] {
  return [
    { type: "start", id: "resp_1", model: "model" },
    { type: "text", text },
    { type: "usage", usage },
    { type: "stop", reason: "end" },
  ];
}

describe.each(names)("the meter of %s", (name) => {
  const dialect = dialects[name];

  test("is not fooled by a text that looks like an end", () => {
    const fakes = [writeStream(dialect, saying("hello")), '"message_stop', '"response.completed', "data: [DONE]\n\n"];
    for (const fake of fakes) {
      const [begun, whole] = [saying(fake).slice(0, 2), saying(fake)].map((events) => writeStream(dialect, events));
      const meter = metered(dialect, begun ?? "");
      expect(meter).toMatchObject({ complete: false, reported: false, failure: undefined });
      expect(meter.usage.output).toBe(0);
      expect(metered(dialect, whole ?? "")).toMatchObject({ complete: true, usage });
    }
  });

  test("reads lines that end with carriage returns, too", () => {
    const stream = writeStream(dialect, saying("hello")).replaceAll("\n", "\r\n");
    expect(metered(dialect, stream)).toMatchObject({ complete: true, usage });
    expect(metered(dialect, stream.slice(0, -2))).toMatchObject({ complete: false });
  });

  test("reads JSON with spaces and its fields in any order", () => {
    const stream = writeStream(dialect, saying("hello")).replaceAll(/^data: (\{.*)$/gm, (_line, json: string) => {
      const fields = Object.entries(JSON.parse(json) as object).reverse();
      return `data: ${JSON.stringify(Object.fromEntries(fields), null, 1).replaceAll(/\n\s*/g, " ")}`;
    });
    expect(metered(dialect, stream)).toMatchObject({ complete: true, usage });
  });

  test("tells a failure inside a stream, and nothing after it is an end", () => {
    const stream = writeStream(dialect, [
      ...saying("some").slice(0, 2),
      { type: "failure", status: 529, message: "busy" },
    ]);
    const meter = metered(dialect, stream, writeStream(dialect, saying("more")));
    expect(meter).toMatchObject({ complete: false, failure: { status: 529, message: "busy" } });
  });

  test("says nothing of what it can not read", () => {
    for (const odd of [
      "",
      "\n\n",
      "data: {\n\n",
      "data: []\n\n",
      "{",
      '{"a":1}',
      "<html>502</html>\n\n",
      "\0\xff\n\n",
    ]) {
      expect(metered(dialect, odd)).toMatchObject({ complete: false, reported: false, failure: undefined });
    }
  });

  test("estimates a little more than there is, however the deltas are cut", () => {
    for (const size of [1, 4, 24, 1000]) {
      const tokens = 3000;
      const text = "word ".repeat(tokens);
      const deltas = text.match(new RegExp(`.{1,${size}}`, "g")) ?? [];
      const events = deltas.map((delta): ModelEvent => ({ type: "text", text: delta }));
      const { estimatedOutputTokens } = metered(dialect, writeStream(dialect, [...saying("").slice(0, 1), ...events]));
      expect(estimatedOutputTokens).toBeGreaterThan(tokens);
      expect(estimatedOutputTokens).toBeLessThan(tokens * 2);
    }
  });
});

test("a stream without a count is complete, and its count is not reported", () => {
  const chunk = (fields: object) => `data: ${JSON.stringify({ id: "1", model: "m", ...fields })}\n\n`;
  const stream = `${chunk({ choices: [{ delta: { content: "a" } }], usage: null })}${chunk({ choices: [{ delta: {}, finish_reason: "stop" }], usage: null })}data: [DONE]\n\n`;
  expect(metered(dialects.chat, stream)).toMatchObject({ complete: true, reported: false });
});

test("an end without a reason is not an end", () => {
  const start = writeStream(dialects.anthropic, saying("some").slice(0, 2));
  expect(metered(dialects.anthropic, `${start}event: message_stop\ndata: {"type":"message_stop"}\n\n`).complete).toBe(
    false,
  );
  const chat = writeStream(dialects.chat, saying("some").slice(0, 2));
  expect(metered(dialects.chat, `${chat}data: [DONE]\n\n`).complete).toBe(false);
});

test("a line that never ends is not held for ever", () => {
  const meter = dialects.chat.meter();
  const piece = encode(`data: ${"a".repeat(1024 * 1024)}`);
  for (let i = 0; i < 40; i++) meter.push(piece);
  meter.push(encode("\n\ndata: [DONE]\n\n"));
  expect(meter.complete).toBe(false);
});
