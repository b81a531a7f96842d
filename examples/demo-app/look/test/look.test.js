import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";

const css = await readFile(new URL("../web/styles.css", import.meta.url), "utf8");

function colour(name) {
  const [, hex] = new RegExp(`--${name}: #([0-9a-f]{6});`).exec(css) ?? assert.fail(`there is no colour ${name}`);
  return [0, 2, 4].map((at) => Number.parseInt(hex.slice(at, at + 2), 16) / 255);
}

function luminance(name) {
  const linear = colour(name).map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
  return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
}

function contrast(one, other) {
  const [dark, bright] = [luminance(one), luminance(other)].sort((a, b) => a - b);
  return (bright + 0.05) / (dark + 0.05);
}

for (const [text, ground] of [
  ["ink", "paper"],
  ["quiet", "paper"],
  ["quiet", "card"],
  ["tomato", "paper"],
  ["leaf-text", "leaf"],
]) {
  test(`${text} on ${ground} can be read by everyone`, () => {
    assert.ok(contrast(text, ground) >= 4.5, `the contrast is ${contrast(text, ground).toFixed(2)}`);
  });
}
