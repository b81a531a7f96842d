import { expect, test } from "vitest";
import { formatBytes, harmless, painter, toJson } from "./terminal.ts";

test.each([
  ["an escape sequence", "\x1b[31mred", "?[31mred"],
  ["a title change", "\x1b]0;x\x07", "?]0;x?"],
  ["an eight-bit control", "\u009b31m", "?31m"],
  ["line breaks and returns", "a\r\nb", "a??b"],
  ["a turn of direction", "a\u202etxt.exe", "a?txt.exe"],
  ["plain text of any script", "grüße, 世界 🙂", "grüße, 世界 🙂"],
])("%s is made harmless", (_, text, expected) => {
  expect(harmless(text)).toBe(expected);
});

test("JSON carries every string and no control character", () => {
  const value = { name: "\x1b]0;\u009b\u2028\u202e\x7f" };
  expect(JSON.parse(toJson(value))).toEqual(value);
  expect(toJson(value)).toMatch(/^[\x20-\x7e]+$/);
});

test("colours are for terminals, unless NO_COLOR is set", () => {
  expect(painter({ isTerminal: true }, {})("red", "x")).toBe("\x1b[31mx\x1b[0m");
  expect(painter({ isTerminal: true }, { NO_COLOR: "1" })("red", "x")).toBe("x");
  expect(painter({ isTerminal: true }, { TERM: "dumb" })("red", "x")).toBe("x");
  expect(painter({ isTerminal: false }, {})("red", "x")).toBe("x");
});

test.each([
  [0, "0 B"],
  [1023, "1023 B"],
  [1536, "1.5 KB"],
  [20 * 1024 * 1024, "20 MB"],
  [3 * 1024 ** 4, "3.0 TB"],
])("%i bytes are shown as %s", (bytes, expected) => {
  expect(formatBytes(bytes)).toBe(expected);
});
