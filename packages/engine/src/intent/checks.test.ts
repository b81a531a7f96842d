import type { Call, Check, CheckOf, VisitStep } from "@slipway/contract";
import { describe, expect, test } from "vitest";
import { checks, intent } from "../testing/answers.ts";
import { checkChecks } from "./checks.ts";

const rest = checks.filter(({ proves }) => proves !== "pack");
const open: VisitStep = { action: "open", page: "list" };
const enter: VisitStep = { action: "fill", control: "entry", with: [], value: "Wool socks" };
const add: VisitStep = { action: "click", control: "add", with: [] };
const item = (value: string) => ({ control: "item", with: [{ variable: "item", value }] });
const left = (count: string) => ({ message: "left", with: [{ variable: "count", value: count }] });
const see = (what: Extract<VisitStep, { action: "see" }>["what"]): VisitStep => ({ action: "see", what });

function visit(...steps: VisitStep[]): CheckOf<"visit"> {
  return { type: "visit", proves: "pack", viewport: "desktop", steps, appearance: null };
}

function call(route: string, more: Partial<Omit<Call, "expect">> & { expect?: Partial<Call["expect"]> } = {}): Call {
  const expect: Call["expect"] = { answer: "accepted", has: [], lacks: [], ...more.expect };
  return { route, with: [], send: [], keep: [], ...more, expect };
}
const calls = (...all: Call[]): Check => ({ type: "calls", proves: "add-item", calls: all });
const put = call("put", { send: [{ field: "name", value: "Socks" }], keep: [{ field: "id", as: "id" }] });
const get = call("get", {
  with: [{ variable: "item", kept: "id" }],
  expect: { has: [{ field: "name", value: "Socks" }] },
});

const messagesOn = (...given: readonly Check[]) => checkChecks(intent, given).map(({ message }) => message);

test.each<[string, ...VisitStep[]]>([
  ["what was entered is seen, in part and in other case", open, enter, add, see({ value: "SOCKS" }), see(item("wool"))],
  ["a count is seen with two values", open, see(left("0")), enter, add, see(left("1"))],
  [
    "another visitor sees it, at the address where the first one is",
    open,
    enter,
    add,
    { action: "switch", visitor: 2 },
    { action: "open", page: "one" },
    see(item("socks")),
  ],
])("a check may ask whether %s", (_, ...steps) => {
  expect(messagesOn(...rest, visit(...steps))).toEqual([]);
});

test("a check may keep what only the app knows", () => {
  expect(messagesOn(...checks, calls(put, get))).toEqual([]);
});

describe("a check of a visit is refused that", () => {
  test.each<[string, string, ...VisitStep[]]>([
    [
      "names another page",
      "the surface has no page basket",
      { action: "open", page: "basket" },
      enter,
      see({ value: "socks" }),
    ],
    [
      "names another control",
      "the surface has no control save",
      open,
      { action: "click", control: "save", with: [] },
      see(left("1")),
    ],
    ["names another message", "the surface has no message done", open, see({ message: "done", with: [] })],
    [
      "leaves a variable open",
      "needs a value for each of its variables",
      open,
      enter,
      see({ control: "item", with: [] }),
    ],
    [
      "fills a variable that is not there",
      "needs a value for each",
      open,
      { ...add, with: [{ variable: "item", value: "Wool" }] } as VisitStep,
      see(left("1")),
    ],
    ["looks for what nobody entered", '"Hats" was not entered', open, enter, see({ value: "Hats" })],
    ["looks for something before it is entered", "was not entered before", open, see(item("Wool socks")), enter, add],
    ["looks for words in a message that nobody entered", '"many", which was not entered', open, see(left("many"))],
    ["does not open a page", "begins by opening a page", enter, open, see({ value: "socks" })],
    [
      "lets another visitor begin nowhere",
      "begins by opening a page",
      open,
      enter,
      { action: "switch", visitor: 2 },
      add,
      see({ value: "socks" }),
    ],
    ["uses things and looks at nothing", "nothing has to be seen", open, enter, add],
    [
      "an empty page passes",
      "it passes on an empty page",
      open,
      { action: "reload" },
      { action: "see-nothing-of", what: left("1") },
    ],
    ["sees a count with one value only", "only ever seen with one value", open, enter, add, see(left("1"))],
  ])("%s", (_, message, ...steps) => {
    expect(messagesOn(...rest, visit(...steps)).join("\n")).toContain(message);
  });
});

describe("a check of calls is refused that", () => {
  test.each<[string, string, ...Call[]]>([
    ["calls another route", "the surface has no route drop", call("drop")],
    ["sends another field", "the request of put has no title", call("put", { send: [{ field: "title", value: "x" }] })],
    ["sends another type", "name of put is a text", call("put", { send: [{ field: "name", value: 5 }] })],
    [
      "expects another field",
      "the response of get has no age",
      put,
      { ...get, expect: { ...get.expect, has: [{ field: "age", value: 1 }] } },
    ],
    [
      "expects what it never sent",
      '"Hats", which was not sent before',
      put,
      { ...get, expect: { ...get.expect, has: [{ field: "name", value: "Hats" }] } },
    ],
    ["guesses an id of the app's", "only the app knows", put, { ...get, with: [{ variable: "item", value: "1" }] }],
    [
      "uses what it never kept",
      "nothing was kept as other",
      put,
      { ...get, with: [{ variable: "item", kept: "other" }] },
    ],
    [
      "reads a refusal",
      "nothing is known of such an answer",
      put,
      { ...get, expect: { ...get.expect, answer: "refused" } },
    ],
    [
      "an app passes that refuses everything",
      "an app that refuses everything",
      call("put", { send: [{ field: "name", value: "" }], expect: { answer: "refused" } }),
    ],
    [
      "an app passes that accepts everything",
      "200 and the same text",
      call("put", { send: [{ field: "name", value: "x" }] }),
    ],
  ])("%s", (_, message, ...all) => {
    expect(messagesOn(...checks, calls(...all)).join("\n")).toContain(message);
  });
});

describe("checks are refused with", () => {
  const [measure] = checks.filter((check) => check.type === "measure");
  if (measure === undefined) throw new Error("there is none");
  const others = checks.filter(({ proves }) => proves !== "fast-start");
  test.each<[string, string, readonly Check[]]>([
    ["a criterion that none proves", "pack needs a check", rest],
    ["an invented criterion", "the intent has no invented", [...checks, { ...measure, proves: "invented" }]],
    ["a limit that is none", "is too high", [...others, { ...measure, metric: "layoutShift", atMost: 99 }]],
    [
      "a page without an address",
      "only the app knows an address of /items/{item}",
      [...others, { ...measure, page: "one" }],
    ],
    [
      "the wrong proof of a kind",
      "phone-layout needs a check of the type visit",
      [...checks.filter(({ proves }) => proves !== "phone-layout"), { ...calls(put, get), proves: "phone-layout" }],
    ],
  ])("%s", (_, message, given) => {
    expect(messagesOn(...given).join("\n")).toContain(message);
  });
});

test("a key that no keyboard has is refused, and a combination is not", () => {
  const press = (key: string): VisitStep => ({ action: "press", key });
  const said = messagesOn(...rest, visit(open, enter, press("Ctrl+K"), press("Down"), see({ value: "socks" })));
  expect(said.join("\n")).toMatch(/no key Ctrl\+K[\s\S]*no key Down/);
  const known = ["Enter", "Escape", "ArrowDown", "Control+Shift+K", "F5", "a", "/"].map(press);
  expect(messagesOn(...rest, visit(open, enter, ...known, see({ value: "socks" }))).join("\n")).not.toContain("no key");
});
