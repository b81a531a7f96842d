import { expect, test } from "vitest";
import type { Output } from "../../../terminal/io.ts";
import { createLive } from "./live.ts";

function terminal(cols: number) {
  const size = { cols, rows: 24 };
  const written: string[] = [];
  const output: Output = {
    isTerminal: true,
    write: async (data) => void written.push(String(data)),
    size: () => size,
    onResize: () => () => {},
  };
  /** What was written since the last time, with escapes that a reader can see. */
  const take = () =>
    written
      .splice(0)
      .join("")
      .replaceAll("\x1b", "^")
      .replaceAll(/\^\[\?\d+[hl]/g, "");
  return { output, size, written, take };
}

test("lines are drawn in place, and what stays goes above them", () => {
  const { output, take } = terminal(80);
  const live = createLive(output);
  live.draw(["one", "two"]);
  expect(take()).toBe("^[2Kone\n^[2Ktwo\n^[J");
  live.draw(["three"]);
  expect(take()).toBe("^[2A\r^[2Kthree\n^[J");
  live.line("stays");
  expect(take()).toBe("^[1A\r^[Jstays\n^[2Kthree\n^[J");
  live.clear();
  expect(take()).toBe("^[1A\r^[J");
  live.clear();
  live.line("alone");
  expect(take()).toBe("alone\n");
});

test("a terminal that was made narrower has broken its lines, and all their rows are drawn over", () => {
  const { output, size, take } = terminal(80);
  const live = createLive(output);
  live.draw(["x".repeat(50), "\x1b[2mshort\x1b[0m"]);
  size.cols = 20;
  take();
  live.draw(["new"]);
  expect(take()).toBe("^[4A\r^[J^[2Knew\n^[J");
});

test("the cursor is away while lines are drawn, and is given back", () => {
  const { output, written } = terminal(80);
  const live = createLive(output);
  const last = (text: string) => written.join("").lastIndexOf(text);
  live.draw(["one"]);
  expect(last("\x1b[?25l")).toBeGreaterThan(last("\x1b[?25h"));
  live[Symbol.dispose]();
  expect(last("\x1b[?25h")).toBeGreaterThan(last("\x1b[?25l"));
  // Lines that were cut off by the terminal break again.
  expect(last("\x1b[?7h")).toBeGreaterThan(last("\x1b[?7l"));
});
