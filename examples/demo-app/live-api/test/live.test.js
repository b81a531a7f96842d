import assert from "node:assert/strict";
import { test } from "node:test";
import { startApi } from "../server/testing.js";

/** The messages of a room's stream, one after the other. */
async function listen(t, baseUrl, room) {
  const controller = new AbortController();
  t.after(() => controller.abort());
  const response = await fetch(`${baseUrl}/api/rooms/${room}/events`, { signal: controller.signal });
  const messages = readMessages(response.body);
  const next = async () => (await messages.next()).value;
  return { response, next, leave: () => controller.abort() };
}

async function* readMessages(body) {
  let text = "";
  for await (const bytes of body.pipeThrough(new TextDecoderStream())) {
    const events = (text + bytes).split("\n\n");
    text = events.pop();
    for (const event of events) yield JSON.parse(event.slice("data: ".length));
  }
}

test("what one adds, the others in the room see without asking", async (t) => {
  const { ask, baseUrl } = await startApi(t);
  await ask("POST", "/api/rooms", { name: "Home" });
  const stream = await listen(t, baseUrl, "home");
  assert.deepEqual((await stream.next()).room.items, []);
  assert.deepEqual(await stream.next(), { type: "people", people: 1 });
  await ask("POST", "/api/rooms/home/items", { name: "milk" });
  const { type, room } = await stream.next();
  assert.equal(type, "room");
  assert.equal(room.items[0].name, "milk");
});

test("people are counted as they come and go", async (t) => {
  const { ask, baseUrl } = await startApi(t);
  await ask("POST", "/api/rooms", { name: "Home" });
  const first = await listen(t, baseUrl, "home");
  await first.next();
  assert.equal((await first.next()).people, 1);
  const second = await listen(t, baseUrl, "home");
  assert.equal((await first.next()).people, 2);
  second.leave();
  assert.equal((await first.next()).people, 1);
});

test("there is no stream of a room that is not there", async (t) => {
  const { baseUrl } = await startApi(t);
  const { response } = await listen(t, baseUrl, "nowhere");
  assert.equal(response.status, 404);
});
