import { expect, test } from "vitest";
import { evidence, fingerprint } from "./fingerprint.ts";

test("errors of one kind have the same fingerprint but different evidence", () => {
  const errors = ["Timeout: /tmp/a1/run/cart.ts took 300 ms", "Timeout: /tmp/b2/run/cart.ts took 4000 ms"];
  expect(new Set(errors.map(fingerprint))).toEqual(new Set(["timeout: cart.ts took # ms"]));
  expect(errors.map(evidence)).toEqual(errors);
});

test("the evidence of a long error is both ends, without control characters", () => {
  const told = evidence(`\u001b[31mFirst\0 line\n${"😀".repeat(10_000)}\nlast line\n`);
  expect(told.length).toBeLessThanOrEqual(4000);
  expect(told).toMatch(/^First line\n😀/);
  expect(told).toMatch(/😀\nlast line$/);
  expect(told.isWellFormed()).toBe(true);
});

test("an empty error is an unknown one", () => {
  expect([evidence(" \0\n"), fingerprint(" \0\n")]).toEqual(["unknown error", "unknown error"]);
});
