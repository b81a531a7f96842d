import assert from "node:assert/strict";
import { mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { openStorage } from "../server/storage.js";

async function temporaryFile(t) {
  const directory = await mkdtemp(join(tmpdir(), "basket-"));
  t.after(() => rm(directory, { recursive: true }));
  return join(directory, "deep", "lists.json");
}

test("what was saved is there after a restart", async (t) => {
  const file = await temporaryFile(t);
  const storage = await openStorage(file);
  await storage.save({ id: "home", name: "Home", items: [{ id: "1", name: "milk" }] });
  const reopened = await openStorage(file);
  assert.deepEqual(reopened.all(), storage.all());
  assert.equal(reopened.get("home").items[0].name, "milk");
});

test("saves at the same time all arrive, and leave nothing beside the file", async (t) => {
  const file = await temporaryFile(t);
  const storage = await openStorage(file);
  const ids = Array.from({ length: 20 }, (_, index) => `room-${index}`);
  await Promise.all(ids.map((id) => storage.save({ id, name: id, items: [] })));
  const reopened = await openStorage(file);
  assert.deepEqual(
    reopened.all().map(({ id }) => id),
    ids,
  );
  assert.deepEqual(await readdir(join(file, "..")), ["lists.json"]);
});

test("listeners hear of each save, until they leave", async (t) => {
  const storage = await openStorage(await temporaryFile(t));
  const heard = [];
  const leave = storage.onSave(({ id }) => heard.push(id));
  await storage.save({ id: "a", name: "A", items: [] });
  leave();
  await storage.save({ id: "b", name: "B", items: [] });
  assert.deepEqual(heard, ["a"]);
});

test("a file that is broken is an error that names it, not an empty list", async (t) => {
  const file = join(await temporaryFile(t), "..", "..", "broken.json");
  await writeFile(file, "{");
  await assert.rejects(openStorage(file), /broken\.json can not be read/);
});
