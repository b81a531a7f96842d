import { expect, test } from "vitest";
import { errorsOf, signatureOf } from "./errors.ts";

const tap = (name: string, tookMs: number) => `TAP version 13
# Subtest: ${name}
not ok 1 - ${name}
  ---
  duration_ms: ${tookMs}
  location: '/workspace/test/sum.test.mjs:4:1'
  failureType: 'testCodeFailure'
  error: '6 == 5'
  stack: |-
    at file:///workspace/test/sum.test.mjs:5:8
  ...
# tests 1
# pass 0
# fail 1
# duration_ms ${tookMs}`;

test("the lines that say what is wrong are found among the others", () => {
  expect(errorsOf(tap("adds", 3.2)).split("\n")).toEqual([
    ...["not ok 1 - adds", "  failureType: 'testCodeFailure'", "  error: '6 == 5'"],
  ]);
  expect(errorsOf("src/a.ts(3,1): error TS2304: Cannot find name 'take'.\nFound 1 error.")).toContain("TS2304");
  expect(errorsOf("line\n".repeat(50))).toBe(Array(20).fill("line").join("\n"));
  expect(errorsOf("")).toBe("");
});

test("the same mistake has the same signature, and another mistake another one", () => {
  const signature = (output: string) => signatureOf(errorsOf(output));
  expect(signature(tap("adds", 3.2))).toBe(signature(tap("adds", 1804.7)));
  expect(signature(tap("adds", 3.2))).not.toBe(signature(tap("subtracts", 3.2)));
  expect(signatureOf("6 == 5")).not.toBe(signatureOf("7 == 5"));
  expect(signatureOf("error at a.ts:3:1\nerror at b.ts:9:1")).toBe(
    signatureOf("error at b.ts:10:2\nerror at a.ts:4:4"),
  );
  expect(signatureOf("failed after 20 ms in 0x7ffe12")).toBe(signatureOf("failed after 35 ms in 0x7aaa99"));
});
