import { afterAll, beforeAll, expect, test } from "vitest";
import { type Control, openControl } from "./control.ts";
import { type Setup, setUp } from "./testing.ts";

let setup: Setup;
let control: Control;
beforeAll(async () => {
  setup = await setUp({ processes: false });
  control = await openControl(setup.standIn);
});
afterAll(async () => {
  await control[Symbol.asyncDispose]();
  await setup[Symbol.asyncDispose]();
});

async function order(method: string, path: string, body?: object, token = control.token) {
  const headers = { authorization: `Bearer ${token}` };
  const init = { method, headers, ...(body !== undefined && { body: JSON.stringify(body) }) };
  const response = await fetch(`${control.url}${path}`, init);
  return { status: response.status, body: (await response.json()) as { message?: string; total?: object } };
}

test("orders are carried out", async () => {
  const { modal } = setup;
  expect(await order("POST", "/faults/refuse", { method: "AppGetOrCreate", code: "PERMISSION_DENIED" })).toMatchObject({
    status: 200,
  });
  await expect(modal.apps.fromName("control", { createIfMissing: true })).rejects.toThrow("PERMISSION_DENIED");
  const app = await modal.apps.fromName("control", { createIfMissing: true });
  const sandbox = await modal.sandboxes.create(app, modal.images.fromRegistry("debian"));
  expect((await order("GET", "/running")).body).toEqual([sandbox.sandboxId]);
  await order("POST", "/clock/advance", { byMs: 300_000 });
  expect(await sandbox.poll()).toBe(124);
  expect((await order("GET", "/usage")).body.total).toMatchObject({ microUsd: expect.any(Number) });
  await order("POST", "/secrets", { name: "by-order", variables: { A: "1" } });
  expect((await modal.secrets.fromName("by-order")).secretId).toMatch(/^st-/);
});

test("without the token nothing is done", async () => {
  expect(await order("POST", "/faults/cut-now", {}, "guess")).toMatchObject({ status: 401 });
});

test.each([
  ["POST", "/faults/refuse", { method: "X", code: "NO_SUCH" }, 400, /code: expected the name of a gRPC status/],
  ["POST", "/faults/refuse", { code: "UNAVAILABLE" }, 400, /method: expected a text/],
  ["POST", "/faults/cut", { method: "X", when: "during" }, 400, /when: expected before or after/],
  ["POST", "/clock/advance", { byMs: -1 }, 400, /byMs: expected a number/],
  ["POST", "/faults/vanish", { sandboxId: "sb-no" }, 500, /not found/],
  ["POST", "/secrets", { name: "n", variables: { A: 1 } }, 400, /variables: expected an object of texts/],
  ["GET", "/nowhere", undefined, 404, /Known: /],
])("%s %s %o is answered with what is wrong", async (method, path, body, status, words) => {
  const answer = await order(method, path, body);
  expect([answer.status, answer.body.message]).toEqual([status, expect.stringMatching(words)]);
});
