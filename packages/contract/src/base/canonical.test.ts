import { isDeepStrictEqual } from "node:util";
import fc from "fast-check";
import { expect, test } from "vitest";
import { canonicalJson, contentHash } from "./canonical.ts";

test("the order of keys and undefined values do not count", async () => {
  const hash = await contentHash({ a: [1, { b: null, c: "ü" }], d: true });
  expect(hash).toMatch(/^sha256:[0-9a-f]{64}$/);
  expect(await contentHash({ d: true, e: undefined, a: [1, { c: "ü", b: null }] })).toBe(hash);
  expect(await contentHash({ d: true, a: [{ c: "ü", b: null }, 1] })).not.toBe(hash);
});

test("the text is JSON, and equal only for equal values", () => {
  fc.assert(
    fc.property(fc.jsonValue(), fc.jsonValue(), (a, b) => {
      const [parsedA, parsedB] = [a, b].map((value) => JSON.parse(JSON.stringify(value)));
      expect(JSON.parse(canonicalJson(a))).toEqual(parsedA);
      expect(canonicalJson(parsedA) === canonicalJson(parsedB)).toBe(isDeepStrictEqual(parsedA, parsedB));
    }),
  );
});
