import assert from "node:assert/strict";
import { test } from "node:test";
import { readEntry } from "../shared/entry.js";

const examples = {
  milk: { amount: "", name: "milk" },
  "6 eggs": { amount: "6", name: "eggs" },
  "2 kg apples": { amount: "2 kg", name: "apples" },
  "500g flour": { amount: "500 g", name: "flour" },
  "1,5 L oat milk": { amount: "1,5 l", name: "oat milk" },
  "3 ripe avocados": { amount: "3", name: "ripe avocados" },
  "  7  up ": { amount: "7", name: "up" },
  "crème fraîche": { amount: "", name: "crème fraîche" },
  12: { amount: "", name: "12" },
};

for (const [text, expected] of Object.entries(examples)) {
  test(`"${text}" is ${expected.amount || "some"} of ${expected.name}`, () => {
    assert.deepEqual(readEntry(text), expected);
  });
}
