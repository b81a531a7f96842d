import { ClientError, Status } from "nice-grpc";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { connectTo, type Setup, setUp } from "./testing.ts";

let setup: Setup;
beforeAll(async () => {
  setup = await setUp({ processes: false });
});
beforeEach(() => setup.standIn.faults.clear());
afterAll(() => setup[Symbol.asyncDispose]());

const hour = 60 * 60 * 1000;

async function sandbox(params: object = {}) {
  const { modal } = setup;
  const app = await modal.apps.fromName("faults", { createIfMissing: true });
  return await modal.sandboxes.create(app, modal.images.fromRegistry("debian"), params);
}

async function codeOf(work: Promise<unknown>): Promise<unknown> {
  const error = await work.then(
    () => null,
    (reason: unknown) => reason,
  );
  return error instanceof ClientError ? Status[error.code] : error;
}

test("the next calls of a method are refused with a code, and no others", async () => {
  const { faults, calls } = setup.standIn;
  faults.refuse("SandboxCreateV2", { code: "PERMISSION_DENIED", message: "not today", times: 2 });
  expect(await codeOf(sandbox())).toBe("PERMISSION_DENIED");
  expect(await codeOf(sandbox())).toBe("PERMISSION_DENIED");
  const before = calls.get("SandboxCreateV2");
  await (await sandbox()).terminate();
  expect(calls.get("SandboxCreateV2")).toBe((before ?? 0) + 1);
});

test("the client waits as long as a refusal tells it to", async () => {
  const { faults, calls } = setup.standIn;
  const before = calls.get("SandboxCreateV2") ?? 0;
  faults.refuse("SandboxCreateV2", { code: "RESOURCE_EXHAUSTED", times: 3, retryAfterSeconds: 0.05 });
  await (await sandbox()).terminate();
  expect(calls.get("SandboxCreateV2")).toBe(before + 4);
});

test("without a time to wait, a rate limit reaches the caller", async () => {
  setup.standIn.faults.refuse("SandboxCreateV2", { code: "RESOURCE_EXHAUSTED" });
  expect(await codeOf(sandbox())).toBe("RESOURCE_EXHAUSTED");
});

test("a cut connection is dialled again", async () => {
  const one = await sandbox();
  setup.standIn.faults.cutNow();
  expect(await one.poll()).toBeNull();
  setup.standIn.faults.cut("SandboxWaitV2", "before");
  expect(await one.poll()).toBeNull();
  await one.terminate();
});

test("a call that is cut before its answer was carried out all the same", async () => {
  const { faults, running } = setup.standIn;
  faults.cut("SandboxCreateV2", "after");
  await (await sandbox({ tags: { cut: "yes" } })).terminate();
  // The client's own retry has made a second one; nobody holds the first.
  const [orphan, ...others] = running();
  expect(others).toEqual([]);
  await (await setup.modal.sandboxes.fromId(orphan ?? "")).terminate();
});

test("a server that closes in the middle of every call is an error, not a wait", async () => {
  setup.standIn.faults.cut("*", "before", 1000);
  expect(await codeOf(sandbox())).toBe("UNAVAILABLE");
});

test("a sandbox that vanishes is not known any more, and its time is still accounted for", async () => {
  const { faults, accounting } = setup.standIn;
  const [forgotten, failed] = [await sandbox(), await sandbox()];
  await faults.vanish(forgotten.sandboxId);
  await faults.vanish(failed.sandboxId, "failed");
  expect(await codeOf(forgotten.poll())).toBe("NOT_FOUND");
  expect(await failed.poll()).toBe(137);
  const accounted = accounting.usage().map(({ sandboxId, endedAtMs }) => [sandboxId, endedAtMs !== null]);
  expect(accounted).toEqual(expect.arrayContaining([[forgotten.sandboxId, true]]));
});

test("tokens that have expired are fetched anew", async () => {
  const { faults, calls } = setup.standIn;
  faults.setTokenLifetime(0);
  const one = await sandbox();
  const before = calls.get("SandboxGetCommandRouterAccess") ?? 0;
  const ran = one.exec(["true"]);
  faults.setTokenLifetime(null);
  expect(await (await ran).wait()).toBe(0);
  expect(calls.get("SandboxGetCommandRouterAccess")).toBe(before + 1);
  await one.terminate();
});

test("revoked tokens are refused", async () => {
  const modal = connectTo(setup.standIn);
  await modal.apps.fromName("faults", { createIfMissing: true });
  setup.standIn.faults.revokeTokens();
  expect(await codeOf(modal.apps.fromName("faults"))).toBe("UNAUTHENTICATED");
  modal.close();
  // This client has a new session from here on.
  setup.modal.close();
  setup = { ...setup, modal: connectTo(setup.standIn) };
});

test("a lifetime ends when the clock has moved past it", async () => {
  const { clock } = setup.standIn;
  const day = await sandbox({ timeoutMs: 24 * hour });
  const short = await sandbox({ timeoutMs: hour });
  await clock.advance(23 * hour);
  expect([await day.poll(), await short.poll()]).toEqual([null, 124]);
  await clock.advance(hour);
  expect(await day.poll()).toBe(124);
});

test("an idle sandbox ends, one that is used does not", async () => {
  const { clock } = setup.standIn;
  const [idle, used] = [await sandbox({ idleTimeoutMs: 60_000 }), await sandbox({ idleTimeoutMs: 60_000 })];
  await clock.advance(40_000);
  await (await used.exec(["true"])).wait();
  await clock.advance(40_000);
  expect([await idle.poll(), await used.poll()]).toEqual([137, null]);
  await clock.advance(60_000);
  expect(await used.poll()).toBe(137);
});

test("the accounting counts the time that the clock has moved, to the micro-USD", async () => {
  const { clock, accounting } = setup.standIn;
  const { sandboxId } = await sandbox({ cpu: 2, memoryMiB: 4096, timeoutMs: 24 * hour });
  await clock.advance(3 * hour);
  await (await setup.modal.sandboxes.fromId(sandboxId)).terminate();
  const usage = accounting.usage().find((one) => one.sandboxId === sandboxId);
  const perSecond = 2 * 0.00003942 + 4 * 0.00000667;
  expect(usage?.seconds).toBeGreaterThanOrEqual(3 * 3600);
  expect(usage?.microUsd).toBe(Math.ceil(Number((perSecond * (usage?.seconds ?? 0) * 1e6).toFixed(6))));
});

test("every call takes as long as the latency says", async () => {
  setup.standIn.faults.setLatency({ callMs: 100 });
  const startedMs = performance.now();
  await setup.modal.apps.fromName("faults", { createIfMissing: true });
  expect(performance.now() - startedMs).toBeGreaterThanOrEqual(99);
});

test("an image build can be slow", async () => {
  const { modal, standIn } = setup;
  const app = await modal.apps.fromName("faults", { createIfMissing: true });
  standIn.faults.slowBuilds(100);
  const startedMs = performance.now();
  await modal.images.fromRegistry("slow").dockerfileCommands(["ENV A=1"]).build(app);
  // It has two layers.
  expect(performance.now() - startedMs).toBeGreaterThanOrEqual(198);
});
