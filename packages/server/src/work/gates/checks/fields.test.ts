import { expect, test } from "vitest";
import { isSame, valuesAt } from "./fields.ts";

test.each<[unknown, string | number | boolean, boolean]>([
  ["Wool  socks", "wool socks", true],
  [2, "2", true],
  [true, "true", true],
  ["13", "3", false],
  [{ toString: 1, valueOf: 1 }, "x", false],
  [[["socks"]], "socks", false],
  [null, "null", false],
])("%j is the same as %j: %j", (found, wanted, same) => {
  expect(isSame(found, wanted)).toBe(same);
});

test("a field that an answer only has by its kind is not there", () => {
  expect(valuesAt({ items: [{ name: "a" }, { name: "b" }, 3] }, "items[].name")).toEqual(["a", "b"]);
  expect(valuesAt(JSON.parse('{"__proto__": 1}'), "constructor")).toEqual([]);
});
