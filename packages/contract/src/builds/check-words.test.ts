import { expect, test } from "vitest";
import { checkLines } from "./check-words.ts";
import { type KeptCheck, keptCheckSchema } from "./checks.ts";
import type { PerformanceMetric } from "./performance.ts";
import type { Surface } from "./surface.ts";

const surface: Surface = {
  pages: [
    { id: "start", path: "/", purpose: "Where one begins" },
    { id: "room", path: "/rooms/{room}", purpose: "A list" },
  ],
  controls: [
    { id: "entry", page: "room", role: "textbox", name: "Item" },
    { id: "add", page: "room", role: "button", name: "Add" },
    { id: "item", page: "room", role: "checkbox", name: "{item}" },
    { id: "size", page: "room", role: "combobox", name: "Size" },
  ],
  messages: [
    { id: "empty", text: "Nothing to pack", one: null, when: "The list has no items" },
    { id: "left", text: "{count} items left", one: "{count} item left", when: "Always" },
  ],
  routes: [
    { id: "add-item", method: "POST", path: "/api/items", purpose: "Adds", request: [], response: [] },
    { id: "get-item", method: "GET", path: "/api/items/{item}", purpose: "One", request: [], response: [] },
  ],
};

const linesOf = (check: object) =>
  checkLines(surface, keptCheckSchema.parse({ proves: "adds", ...check }) as KeptCheck);
const item = { control: "item", with: [{ variable: "item", value: "Socks" }] };
const left = (value: string) => ({ message: "left", with: [{ variable: "count", value }] });

test.each<[object, string]>([
  [{ action: "open", page: "start" }, "open /"],
  [{ action: "open", page: "room" }, "open /rooms/{room}"],
  [{ action: "fill", control: "entry", value: 'a "wide" sock' }, 'fill the textbox "Item" with "a \\"wide\\" sock"'],
  [{ action: "fill", control: "entry", value: "" }, 'empty the textbox "Item"'],
  [{ action: "choose", control: "size", value: "Large" }, 'choose "Large" in the combobox "Size"'],
  [{ action: "click", control: "add" }, 'click the button "Add"'],
  [{ action: "click", ...item }, 'click the checkbox "Socks"'],
  [{ action: "press", key: "Enter" }, "press the key Enter"],
  [{ action: "reload" }, "reload the page"],
  [{ action: "switch", visitor: 2 }, "continue as visitor 2"],
  [{ action: "see", what: item }, 'see the checkbox "Socks"'],
  [{ action: "see", what: { message: "empty" } }, 'see the message "Nothing to pack"'],
  [{ action: "see", what: left("3") }, 'see the message "3 items left"'],
  [{ action: "see", what: left("1") }, 'see the message "1 item left" or "1 items left"'],
  [{ action: "see", what: { value: "Socks" } }, 'see "Socks"'],
  [{ action: "see-nothing-of", what: item }, 'see no checkbox "Socks"'],
  [{ action: "see-nothing-of", what: left("2") }, 'see no message "2 items left"'],
  [{ action: "see-nothing-of", what: { value: "Socks" } }, 'see "Socks" nowhere'],
])("the step %j reads: %s", (step, line) => {
  const steps = [{ action: "reload" }, step];
  expect(linesOf({ type: "visit", viewport: "phone", appearance: null, steps })[1]).toBe(line);
});

test.each<[object, string]>([
  [{ route: "add-item", expect: { answer: "refused" } }, "POST /api/items is refused"],
  [
    {
      route: "add-item",
      send: [
        { field: "name", value: "Socks" },
        { field: "count", value: 2 },
      ],
      expect: { answer: "accepted", has: [{ field: "item.done", value: false }] },
      keep: [{ field: "item.id", as: "first" }],
    },
    'POST /api/items with name "Socks", count 2 is accepted; the answer has item.done false; its item.id is kept as {first}',
  ],
  [
    {
      route: "get-item",
      with: [{ variable: "item", kept: "first" }],
      expect: {
        answer: "accepted",
        has: [{ field: "name", value: "Socks" }],
        lacks: [{ field: "tags[]", value: "old" }],
      },
    },
    'GET /api/items/{first} is accepted; the answer has name "Socks" and lacks tags[] "old"',
  ],
  [
    { route: "get-item", with: [{ variable: "item", value: "nobody's" }], expect: { answer: "refused" } },
    "GET /api/items/nobody's is refused",
  ],
])("the call %j reads: %s", (call, line) => {
  expect(linesOf({ type: "calls", calls: [call] })).toEqual([line]);
});

test.each<[PerformanceMetric, number, string]>([
  ["firstByteMs", 200, "the first byte comes within 200 ms"],
  ["largestPaintMs", 1000, "the largest part is painted within 1000 ms"],
  ["interactionMs", 100, "an interaction takes effect within 100 ms"],
  ["transferKilobytes", 300, "at most 300 kilobytes are transferred"],
  ["layoutShift", 0.1, "the layout shifts by at most 0.1"],
])("a measure of %s reads as one line", (metric, atMost, words) => {
  const check = { type: "measure", page: "start", sees: { control: "add" }, metric, atMost };
  expect(linesOf(check)).toEqual([`open / and see the button "Add": ${words}`]);
});

test("a check has a line for each step, by whose index a dispute names the one that fails", () => {
  const steps = [
    { action: "open", page: "room" },
    { action: "click", control: "add" },
    { action: "see", what: item },
  ];
  expect(linesOf({ type: "visit", viewport: "desktop", appearance: "Tidy", steps })).toHaveLength(steps.length);
});

test("what the surface does not have is told by its id, and a check of an earlier version as it is kept", () => {
  const calls = [{ route: "gone", expect: { answer: "accepted" } }];
  expect(linesOf({ type: "calls", calls })).toEqual(["route gone is accepted"]);
  const steps = [
    { action: "open", page: "gone" },
    { action: "see", what: { control: "gone" } },
    { action: "see-nothing-of", what: { message: "gone" } },
  ];
  const visit = { type: "visit", viewport: "phone", appearance: null, steps };
  expect(linesOf(visit)).toEqual(["open page gone", "see the control gone", "see no message gone"]);
  const earlier = { type: "performance", proves: "adds", path: "/", metric: "layoutShift", atMost: 1 };
  expect(linesOf(earlier)).toEqual([JSON.stringify(earlier)]);
});
