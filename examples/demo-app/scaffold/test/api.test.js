import assert from "node:assert/strict";
import { test } from "node:test";
import { startApi } from "../server/testing.js";

test("the API says that it is well", async (t) => {
  const { ask } = await startApi(t);
  assert.deepEqual(await ask("GET", "/api/health"), { status: 200, body: { ok: true } });
});

test("what is not there is 404, whatever the method", async (t) => {
  const { ask } = await startApi(t);
  assert.equal((await ask("GET", "/api/nothing")).status, 404);
  assert.equal((await ask("DELETE", "/api/health")).status, 404);
});
