import assert from "node:assert/strict";
import { test } from "node:test";
import { inShoppingOrder } from "../shared/order.js";

const item = (name, done) => ({ name, done });

test("what is done goes to the end, and nothing else changes its place", () => {
  const items = [item("milk", true), item("eggs", false), item("tea", true), item("rice", false)];
  assert.deepEqual(
    inShoppingOrder(items).map(({ name }) => name),
    ["eggs", "rice", "milk", "tea"],
  );
  assert.equal(items[0].name, "milk");
});
