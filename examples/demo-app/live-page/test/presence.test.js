import assert from "node:assert/strict";
import { test } from "node:test";
import { presenceWords } from "../shared/presence.js";

test("one person is told from many, and from nobody knows", () => {
  assert.equal(presenceWords(1), "1 person here");
  assert.equal(presenceWords(3), "3 people here");
  assert.equal(presenceWords(undefined), "");
});
