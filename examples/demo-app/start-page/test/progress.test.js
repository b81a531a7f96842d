import assert from "node:assert/strict";
import { test } from "node:test";
import { progressOf } from "../shared/progress.js";

const item = (done) => ({ done });

test("an empty list is not done", () => {
  assert.deepEqual(progressOf([]), { done: 0, total: 0, words: "Nothing on the list yet" });
});

test("a list tells how many of its items are done", () => {
  assert.equal(progressOf([item(true), item(false), item(false)]).words, "1 of 3 done");
});

test("a list whose items are all done says so", () => {
  assert.deepEqual(progressOf([item(true), item(true)]), { done: 2, total: 2, words: "All done" });
});
