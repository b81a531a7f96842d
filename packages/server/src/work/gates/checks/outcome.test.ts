import type { CheckOf, Surface } from "@slipway/contract";
import { describe, expect, test } from "vitest";
import type { CheckerAnswer } from "./answers.ts";
import { visitJob } from "./browser-job.ts";
import { browserJob } from "./earlier.ts";
import { measureOutcome, visitOutcome } from "./outcome.ts";

const surface: Surface = {
  pages: [{ id: "list", path: "/list", purpose: "The list" }],
  controls: [
    { id: "entry", page: "list", role: "textbox", name: "Item" },
    { id: "shop", page: null, role: "combobox", name: "Shop" },
    { id: "add", page: "list", role: "button", name: "Add item" },
    { id: "item", page: "list", role: "checkbox", name: "{item}" },
  ],
  messages: [{ id: "left", text: "{count} items left", one: "{count} item left", when: "Always" }],
  routes: [],
};

const check: CheckOf<"visit"> = {
  type: "visit",
  proves: "adds-items",
  viewport: "phone",
  appearance: null,
  steps: [
    { action: "open", page: "list" },
    { action: "fill", control: "entry", with: [], value: "secret-value" },
    { action: "choose", control: "shop", with: [], value: "secret-choice" },
    { action: "press", key: "Enter" },
    { action: "click", control: "add", with: [] },
    { action: "see", what: { message: "left", with: [{ variable: "count", value: "37" }] } },
    { action: "reload" },
    { action: "see-nothing-of", what: { control: "item", with: [{ variable: "item", value: "secret-gone" }] } },
    { action: "see", what: { value: "secret-value" } },
    { action: "switch", visitor: 2 },
  ],
};
const visit = visitJob(surface, check);

const failure = (step: number, why: "missing" | "there" | "refused" | "unopened" | "stuck"): CheckerAnswer => ({
  type: "failed",
  step,
  why,
  detail: "the browser's words",
  page: '- heading "List"\n- button "Add"\n- \'button "Save: all" [disabled]\'\n- status: You have 2 items left.',
  errors: ["GET /api: 500"],
});

describe("a visit's failure", () => {
  test.each([
    [0, "unopened", "1. /list could not be loaded: the browser's words"],
    [
      1,
      "missing",
      '2. The textbox "Item", which the surface has on /list, is not on the page. There is no textbox with a name.',
    ],
    [
      2,
      "refused",
      '3. This could not be done: The combobox "Shop", which the surface has on every page, was chosen from. the browser\'s words',
    ],
    [
      4,
      "missing",
      '5. The button "Add item", which the surface has on /list, is not on the page. Of this role the page has "Add", "Save: all".',
    ],
    [
      5,
      "missing",
      '6. The surface\'s message "{count} items left", as it has to read now, is not on the page. The page says "2 items left".',
    ],
    [7, "there", '8. The checkbox "{item}", which the surface has on /list, is on the page, and must not be any more.'],
    [8, "missing", "9. What was entered before is not on the page."],
    [0, "stuck", "1. The page stopped answering."],
  ] as const)(
    "at step %i, %s, names what the surface says and what is there instead, and no value",
    (step, why, text) => {
      const outcome = visitOutcome(visit, failure(step, why));
      // Two hangs are not known to be the same failure.
      expect(outcome).toMatchObject(why === "stuck" ? { ok: false } : { ok: false, step });
      expect("step" in outcome).toBe(why !== "stuck");
      expect(outcome.text.split("\n")).toContain(text);
      expect(outcome.text).toMatch(/Errors of the page:\nGET \/api: 500\nThe page at that moment:\n- heading "List"\n/);
      expect(outcome.text).not.toMatch(/secret|37/);
    },
  );

  test("tells nothing of the steps behind it", () => {
    const { text } = visitOutcome({ ...visit }, failure(1, "missing"));
    expect(text).not.toMatch(/Add item|items left"|combobox/);
  });
});

test("a check in earlier words names what is operated, and never what has to be seen", () => {
  const target = { role: "text", name: "secret" } as const;
  const button = { role: "button", name: "Add" } as const;
  const steps = [
    { action: "open", path: "/" },
    { action: "click", target: button },
    { action: "see", target },
  ] as const;
  const job = browserJob({ type: "browser", proves: "a", viewport: "phone", appearance: null, steps: [...steps] });
  const { text } = visitOutcome(job, failure(2, "missing"));
  expect(text).toContain('2. The button "Add" was clicked.\n3. A text that must be there was not visible.');
  expect(text).not.toContain("secret");
});

test("looks that were not judged are not passed over in silence", () => {
  expect(visitOutcome(visit, { type: "passed" }).text).not.toContain("judged");
  const outcome = visitOutcome({ ...visit, appearance: "It is green." }, { type: "passed" });
  expect(outcome).toEqual({ ok: true, text: expect.stringMatching(/How it looks was not judged\.$/) });
});

describe("a figure", () => {
  const paint = { path: "/", metric: "largestPaintMs", atMost: 500 } as const;
  test.each([
    [[100, 900, 200], true],
    [[100, 900, 501], false],
    [[500, 500, 500], true],
    [[100, null, 100], false],
    [[], false],
  ])("of %j: at most 500 is %j", (values, ok) => {
    expect(measureOutcome(paint, { type: "measured", values }).ok).toBe(ok);
  });

  test("of a page that does not load is a failure", () => {
    expect(measureOutcome(paint, failure(0, "unopened"))).toMatchObject({ ok: false });
  });

  test("can not be had by saying that all went well", () => {
    expect(() => measureOutcome(paint, { type: "passed" })).toThrow("a different check");
    expect(() => visitOutcome(visit, { type: "measured", values: [1] })).toThrow("a different check");
  });
});

test("a page that almost says a message over and over is read in no time", () => {
  const text = "{home} {homeGoals} : {awayGoals} {away} (final)";
  const like = {
    step: { action: "see" as const, target: { role: "text" as const, names: ["x"] } },
    done: "",
    unmet: "No.",
    like: text,
  };
  const answer = { ...failure(0, "missing"), page: ":".repeat(16_000) };
  const outcome = visitOutcome({ viewport: "phone", appearance: null, steps: [like] }, answer);
  expect(outcome.text).not.toContain("The page says");
});
