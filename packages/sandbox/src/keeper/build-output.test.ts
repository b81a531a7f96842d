import { expect, test } from "vitest";
import { createBuildOutput } from "./build-output.ts";

function linesOf(...parts: (string | Uint8Array)[]): string[] {
  const lines: string[] = [];
  const output = createBuildOutput((line) => lines.push(line));
  for (const part of parts) output.push("stdout", Buffer.from(part));
  output.end();
  return lines;
}

test("lines are told whole, however their bytes arrive", () => {
  const bytes = Buffer.from("größe\r\nnext\n\nlast");
  expect(linesOf(...[...bytes].map((byte) => Uint8Array.of(byte)))).toEqual(["größe", "next", "last"]);
});

test("of a progress bar its last state is told", () => {
  expect(linesOf("reading 1%\rreading 5", "0%\rreading 100%\r\n", "done\n")).toEqual(["reading 100%", "done"]);
});

test("nothing that steers a terminal gets through", () => {
  expect(linesOf("\x1b]0;title\x07\x1b[31mred\x1b[0m\x9b2J \u202eevil\u0000\tend\n")).toEqual(["red2J evil end"]);
});

test("standard output and standard error do not run into each other", () => {
  const output = createBuildOutput(() => {});
  output.push("stdout", Buffer.from("on standard "));
  output.push("stderr", Buffer.from("an error\n"));
  output.push("stdout", Buffer.from("output\n"));
  expect(output.lastLines).toBe("an error\non standard output");
});

test("the last lines are kept, and no more than can be read", () => {
  const output = createBuildOutput(() => {});
  for (let n = 0; n < 1000; n++) output.push("stdout", Buffer.from(`${n} ${"x".repeat(n)}\n`));
  output.push("stdout", Buffer.from("y".repeat(1_000_000)));
  output.end();
  const lines = output.lastLines.split("\n");
  expect(lines).toHaveLength(20);
  expect(lines[18]).toMatch(/^999 x/);
  expect(output.lastLines.length).toBeLessThan(20 * 402);
});
