import { type Criterion, type KeptCheck, newId, type Workflow } from "@slipway/contract";
import { expect, test } from "vitest";
import { task } from "../../testing/plans.ts";
import { demandsOf, dueOf, inForce } from "./demands.ts";

const criterion = (id: string): Criterion => ({ id, kind: "functional", statement: `${id} is true.` });
const visit: Workflow = {
  id: "visit",
  title: "A visit",
  steps: ["Open", "Look"],
  success: "It is seen.",
  walk: ["start", "start"],
};
const check = (proves: string): KeptCheck => {
  return { type: "measure", proves, page: "start", sees: { value: "Shop" }, metric: "layoutShift", atMost: 1 };
};
const intent = { criteria: [criterion("adds"), criterion("shares"), criterion("nobody")], workflows: [visit] };
const records = ["adds", "shares", "nobody", "visit"].map((id) => ({ criterion: id, check: [check(id)] }));
const plans = [
  { tasks: [task("api", [], { criteria: ["adds"] }), task("page", [], { criteria: ["adds"] })] },
  { tasks: [task("rooms", [], { criteria: ["shares"] })] },
];

test.each<[string[], string[]]>([
  [[], []],
  [["api"], []],
  [["api", "page"], ["adds"]],
  [["rooms"], ["shares"]],
  [
    ["api", "page", "rooms"],
    ["adds", "shares", "nobody", "visit"],
  ],
])("with %j done, %j is due", (within, due) => {
  expect(dueOf(demandsOf(intent, records, plans), new Set(within)).map(({ id }) => id)).toEqual(due);
});

test("a workflow is told by its steps and its success", () => {
  expect(demandsOf(intent, records, plans).at(-1)?.statement).toBe("A visit:\n1. Open\n2. Look\nIt is seen.");
});

test("checks of an intent that was locked before there were surfaces stay as they are", () => {
  const earlier = { type: "performance", proves: "adds", path: "/", metric: "layoutShift", atMost: 1 };
  const [demand] = demandsOf(intent, [{ criterion: "adds", check: [earlier] }, ...records.slice(1)], plans);
  expect(demand?.checks).toEqual([earlier]);
});

test("a check that was found wrong is replaced by the one that was compiled anew, and its others stay", () => {
  const kept = [{ build: newId("bld"), intentHash: "x", criterion: "adds", check: [check("adds"), check("adds")] }];
  const [first, second] = ["first", "second"].map((value) => ({ ...check("adds"), sees: { value } }));
  const dispute = (number: number, checkIndex: number, after: unknown) => ({
    number,
    criterion: "adds",
    checkIndex,
    replacement: JSON.parse(JSON.stringify(after && { before: check("adds"), after })),
  });
  const disputes = [
    dispute(3, 1, second),
    dispute(1, 1, first),
    dispute(2, 0, null),
    { ...dispute(4, 0, first), criterion: "shares" },
  ];
  expect(inForce(kept, disputes)[0]?.check).toEqual([check("adds"), second]);
});

test("what nothing checks is never satisfied by that", () => {
  expect(() => demandsOf(intent, records.slice(1), plans)).toThrow("nothing checks adds");
  expect(() => demandsOf(intent, [{ criterion: "adds", check: [] }, ...records.slice(1)], plans)).toThrow();
});
