import { describe, expect, test } from "vitest";
import { type ErrorCode, errorTable, hasCode, isErrorCode, SlipwayError } from "./errors.ts";

describe.each(Object.keys(errorTable) as ErrorCode[])("%s", (code) => {
  test("has a failure status, a retry and a sentence that says what to do", () => {
    const { status, retry, action } = errorTable[code];
    expect(status).toBeGreaterThanOrEqual(400);
    expect(status).toBeLessThan(600);
    expect(["never", "later"]).toContain(retry);
    expect(action).toMatch(/^[A-Z].*\.$/);
    expect(code).toMatch(/^[a-z]+(_[a-z]+)*$/);
  });
});

test("an error crosses a border with what a caller needs, without its cause", () => {
  const error = new SlipwayError("out_of_disk", "The disk is full.", { cause: new Error("ENOSPC") });
  expect(JSON.parse(JSON.stringify(error))).toEqual({
    code: "out_of_disk",
    message: "The disk is full.",
    retry: "never",
    action: errorTable.out_of_disk.action,
  });
  expect(error).toMatchObject({ name: "SlipwayError", status: 507, retry: "never" });
});

test("an error is recognised by its code", () => {
  const error: unknown = new SlipwayError("aborted", "x");
  expect(hasCode(error, "aborted")).toBe(true);
  expect(hasCode(error, "internal")).toBe(false);
  expect(hasCode(Object.assign(new Error("x"), { code: "aborted" }), "aborted")).toBe(false);
});

test("only the table's own keys are codes", () => {
  expect(isErrorCode("aborted")).toBe(true);
  for (const value of ["toString", "__proto__", "", 5, null]) expect(isErrorCode(value)).toBe(false);
});
