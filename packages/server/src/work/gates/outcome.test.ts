import { describe, expect, test } from "vitest";
import type { CheckerAnswer } from "./answers.ts";
import { browserOutcome, type CheckOf, performanceOutcome } from "./outcome.ts";

const check: CheckOf<"browser"> = {
  type: "browser",
  proves: "adds-items",
  viewport: "phone",
  appearance: null,
  steps: [
    { action: "open", path: "/list" },
    { action: "fill", target: { role: "textbox", name: "Item" }, value: "secret-value" },
    { action: "choose", target: { role: "combobox", name: "Shop" }, value: "secret-choice" },
    { action: "press", key: "Enter" },
    { action: "click", target: { role: "button", name: "Add" } },
    { action: "see", target: { role: "listitem", name: "secret-item" } },
    { action: "reload" },
    { action: "see-nothing-of", target: { role: "text", name: "secret-gone" } },
  ],
};

const failure = (step: number, why: "missing" | "there" | "refused" | "unopened" | "stuck"): CheckerAnswer => ({
  type: "failed",
  step,
  why,
  detail: "the browser's words",
  page: '- heading "List"',
  errors: ["GET /api: 500"],
});

describe("a browser's failure", () => {
  test.each([
    [0, "unopened", "1. /list could not be loaded: the browser's words"],
    [1, "missing", '2. There was no visible textbox "Item".'],
    [2, "refused", '3. The combobox "Shop" could not be used (choose): the browser\'s words'],
    [4, "missing", '5. There was no visible button "Add".'],
    [5, "missing", "6. A listitem that must be there was not visible."],
    [7, "there", "8. A text that must be gone was visible."],
    [0, "stuck", "1. The page stopped answering."],
  ] as const)(
    "at step %i, %s, is told with what was done before and nothing that was looked for",
    (step, why, text) => {
      const outcome = browserOutcome(check, failure(step, why));
      expect(outcome.ok).toBe(false);
      expect(outcome.text.split("\n")).toContain(text);
      expect(outcome.text).toMatch(/Errors of the page:\nGET \/api: 500\nThe page at that moment:\n- heading "List"$/);
      expect(outcome.text).not.toContain("secret");
    },
  );
});

test("looks that were not judged are not passed over in silence", () => {
  expect(browserOutcome(check, { type: "passed" }).text).not.toContain("judged");
  const outcome = browserOutcome({ ...check, appearance: "It is green." }, { type: "passed" });
  expect(outcome).toEqual({ ok: true, text: expect.stringMatching(/How it looks was not judged\.$/) });
});

describe("a figure", () => {
  const paint: CheckOf<"performance"> = {
    type: "performance",
    proves: "is-quick",
    path: "/",
    metric: "largestPaintMs",
    atMost: 500,
  };
  test.each([
    [[100, 900, 200], true],
    [[100, 900, 501], false],
    [[500, 500, 500], true],
    [[100, null, 100], false],
    [[], false],
  ])("of %j: at most 500 is %j", (values, ok) => {
    expect(performanceOutcome(paint, { type: "measured", values }).ok).toBe(ok);
  });

  test("of a page that does not load is a failure", () => {
    expect(performanceOutcome(paint, failure(0, "unopened"))).toMatchObject({ ok: false });
  });

  test("can not be had by saying that all went well", () => {
    expect(() => performanceOutcome(paint, { type: "passed" })).toThrow("a different check");
    expect(() => browserOutcome(check, { type: "measured", values: [1] })).toThrow("a different check");
  });
});
