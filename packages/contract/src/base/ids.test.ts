import { expect, test } from "vitest";
import { execIdSchema, newId, sandboxIdSchema, snapshotIdSchema } from "./ids.ts";

test("an id has its kind's prefix and passes only its kind's schema", () => {
  const id = newId("sbx");
  expect(sandboxIdSchema.parse(id)).toBe(id);
  expect(execIdSchema.safeParse(id).success).toBe(false);
  expect(snapshotIdSchema.safeParse(id).success).toBe(false);
});

test("later ids sort later", () => {
  const times = [0, 1, 31, 32, 1000, 1_700_000_000_000, 1_700_000_000_001, 32 ** 9 - 1];
  const ids = times.map((time) => newId("exc", time));
  expect(ids.toSorted()).toEqual(ids);
});

test("ids made at the same time differ", () => {
  expect(new Set(Array.from({ length: 10_000 }, () => newId("snp", 5))).size).toBe(10_000);
});

test.each([
  ["a path", "sbx_../../../../etc/passwd"],
  ["upper case", newId("sbx").toUpperCase()],
  ["a letter that is left out", `sbx_${"i".repeat(20)}`],
  ["one character too few", newId("sbx").slice(0, -1)],
  ["one too many", `${newId("sbx")}0`],
  ["a line break at the end", `${newId("sbx")}\n`],
  ["nothing", ""],
  ["a number", 5],
  ["null", null],
])("%s is not an id", (_name, value) => {
  expect(sandboxIdSchema.safeParse(value).success).toBe(false);
});
