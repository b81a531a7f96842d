import assert from "node:assert/strict";
import { test } from "node:test";
import { createHub } from "../server/hub.js";

test("who is in a room hears what happens there, and nothing of other rooms", () => {
  const hub = createHub();
  const [home, office] = [[], []];
  hub.join("home", (message) => home.push(message));
  hub.join("office", (message) => office.push(message));
  hub.tell("home", { type: "changed" });
  assert.deepEqual(home, [{ type: "people", people: 1 }, { type: "changed" }]);
  assert.deepEqual(office, [{ type: "people", people: 1 }]);
});

test("everyone is told how many are there when somebody comes or leaves", () => {
  const hub = createHub();
  const heard = [];
  hub.join("home", ({ people }) => heard.push(people));
  const leave = hub.join("home", () => {});
  leave();
  leave();
  assert.deepEqual(heard, [1, 2, 1]);
});

test("what happens in an empty room is nobody's business", () => {
  const hub = createHub();
  const heard = [];
  hub.join("home", (message) => heard.push(message.type))();
  hub.tell("home", { type: "changed" });
  assert.deepEqual(heard, ["people"]);
});
