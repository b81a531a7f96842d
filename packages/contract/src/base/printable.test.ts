import { stripVTControlCharacters } from "node:util";
import fc from "fast-check";
import { expect, test } from "vitest";
import { printable } from "./printable.ts";

test.each([
  ["colours", "\u001b[1;31mred\u001b[0m", "red"],
  ["a cleared screen", "a\u001b[2J\u001b[Hb", "ab"],
  ["a window title", "\u001b]0;you are root\u0007text", "text"],
  ["a title that ends by ST", "\u001b]0;title\u001b\\text", "text"],
  ["a link", "\u001b]8;;http://evil.example\u001b\\here\u001b]8;;\u001b\\", "here"],
  ["a clipboard write", "\u001b]52;c;cm0gLXJm\u0007ok", "ok"],
  ["a device control string", "\u001bP1$r0m\u001b\\ok", "ok"],
  ["C1 forms of the same", "\u009b31mred\u009d0;title\u009cok", "redok"],
  ["a reset", "\u001bcok", "ok"],
  ["a charset switch", "\u001b(0ok", "ok"],
  ["an overwritten line", "good\rbad\bx", "goodbadx"],
  ["text turned around", "a\u202eb\u2066c", "abc"],
  ["an escape without an end", "\u001b]0;never ends", "0;never ends"],
  ["an escape within an escape", "\u001b]0;a\u001b[31mb\u0007c", "0;abc"],
])("%s is not shown unchanged", (_, text, shown) => {
  expect(printable(text)).toBe(shown);
});

test("line breaks, tabs and all scripts are kept", () => {
  const text = "line\n\tindented: žluťoučký 日本語 👩‍👩‍👧";
  expect(printable(text)).toBe(text);
});

test("no text keeps anything that a terminal obeys", () => {
  const pieces = ["\u001b", "[", "]", "P", "\\", "\u0007", "\u009b", "\u009c", "m", "0", ";", "\n", "x"];
  fc.assert(
    fc.property(fc.array(fc.constantFrom(...pieces), { maxLength: 40 }), (parts) => {
      const shown = printable(parts.join(""));
      // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
      expect(shown).not.toMatch(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/);
      expect(stripVTControlCharacters(shown)).toBe(shown);
    }),
  );
});

test("a text of nothing but openings takes no longer than it is long", () => {
  const before = process.cpuUsage();
  printable("\u001b]".repeat(500_000));
  printable("\u001b[0".repeat(500_000));
  expect(process.cpuUsage(before).user).toBeLessThan(2_000_000);
});
