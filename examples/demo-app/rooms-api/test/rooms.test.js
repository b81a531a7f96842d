import assert from "node:assert/strict";
import { test } from "node:test";
import { startApi } from "../server/testing.js";

test("a room is made once, and found again by the same name", async (t) => {
  const { ask } = await startApi(t);
  const made = await ask("POST", "/api/rooms", { name: "Café Müller" });
  assert.equal(made.status, 201);
  assert.equal(made.body.id, "cafe-muller");
  const again = await ask("POST", "/api/rooms", { name: " café  müller" });
  assert.equal(again.status, 200);
  assert.equal(again.body.name, "Café Müller");
  assert.equal((await ask("GET", "/api/rooms")).body.length, 1);
});

test("items are added, checked off and removed, and the room is answered as it is then", async (t) => {
  const { ask } = await startApi(t);
  await ask("POST", "/api/rooms", { name: "Home" });
  const { status, body } = await ask("POST", "/api/rooms/home/items", { name: "apples", amount: "2 kg" });
  assert.equal(status, 201);
  const [{ id, ...apples }] = body.items;
  assert.deepEqual(apples, { name: "apples", amount: "2 kg", done: false });
  const checked = await ask("PATCH", `/api/rooms/home/items/${id}`, { done: true });
  assert.equal(checked.body.items[0].done, true);
  assert.deepEqual((await ask("GET", "/api/rooms/home")).body, checked.body);
  assert.deepEqual((await ask("DELETE", `/api/rooms/home/items/${id}`)).body.items, []);
  assert.equal((await ask("DELETE", `/api/rooms/home/items/${id}`)).status, 404);
});

test("the room that changed last is the first", async (t) => {
  const { ask } = await startApi(t);
  t.mock.timers.enable({ apis: ["Date"], now: 1000 });
  await ask("POST", "/api/rooms", { name: "Home" });
  t.mock.timers.tick(1000);
  await ask("POST", "/api/rooms", { name: "Office" });
  t.mock.timers.tick(1000);
  await ask("POST", "/api/rooms/home/items", { name: "milk" });
  const { body } = await ask("GET", "/api/rooms");
  assert.deepEqual(
    body.map(({ id }) => id),
    ["home", "office"],
  );
});

for (const [what, method, path, body, status] of [
  ["a room without a name", "POST", "/api/rooms", { name: " " }, 400],
  ["a name without a letter", "POST", "/api/rooms", { name: "!?" }, 400],
  ["a name without end", "POST", "/api/rooms", { name: "x".repeat(61) }, 400],
  ["an item for no room", "POST", "/api/rooms/nowhere/items", { name: "milk" }, 404],
  ["an item that is no text", "POST", "/api/rooms/home/items", { name: ["milk"] }, 400],
  ["an item that is not there", "PATCH", "/api/rooms/home/items/1", { done: true }, 404],
  ["what is no JSON", "POST", "/api/rooms", "{", 400],
  ["what is too long", "POST", "/api/rooms", { name: "x".repeat(20_000) }, 413],
]) {
  test(`${what} is refused with words`, async (t) => {
    const { ask } = await startApi(t);
    await ask("POST", "/api/rooms", { name: "Home" });
    const refused = await ask(method, path, body);
    assert.equal(refused.status, status);
    assert.match(refused.body.error, /\w+ .*\.$/);
  });
}
