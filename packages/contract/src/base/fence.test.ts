import { expect, it } from "vitest";
import { fence } from "./fence.ts";

it("the same text gets the same mark, and another text another one", () => {
  expect(fence("request", "a shop")).toBe(fence("request", "a shop"));
  expect(fence("request", "a shop")).not.toBe(fence("request", "a show"));
});

it("a text that quotes fences does not end them early", () => {
  let text = "a shop";
  for (let round = 0; round < 50; round++) {
    const fenced = fence("request", text);
    const [, mark] = /^<request ([0-9a-f]{16})>\n/.exec(fenced) ?? [];
    expect(fenced.split(`</request ${mark}>`)).toHaveLength(2);
    text = fenced;
  }
});

it("control characters and broken surrogates do not reach the prompt", () => {
  const fenced = fence("request", "a\u001b[31m\ud800b");
  expect(fenced).not.toContain("\u001b");
  expect(fenced.isWellFormed()).toBe(true);
});
