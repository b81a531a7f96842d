import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createSandboxSchema, newId, SlipwayError } from "@slipway/contract";
import { afterEach, beforeEach, expect, test } from "vitest";
import { systemClock } from "../clock.ts";
import { openEventLog } from "../events/log.ts";
import { type KeeperLayout, keeperLayout } from "../layout.ts";
import { type SandboxRecord, writeRecord } from "../record.ts";
import { recordFixture } from "../record-fixture.ts";
import type { Launch, Runtime } from "../runtime.ts";
import { openBoxes } from "./boxes.ts";
import { createLifecycle } from "./lifecycle.ts";

type TestRuntime = Runtime<SandboxRecord, null, never>;

let root: string;
let layout: KeeperLayout;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "slipway-"));
  layout = keeperLayout(root);
  mkdirSync(layout.records.sandboxes, { recursive: true });
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

/** A lifecycle over a runtime that fails as told. */
function setUp({
  start = async () => {},
  ...runtime
}: Partial<TestRuntime> & { start?: Launch<SandboxRecord>["start"] }) {
  const errors: unknown[] = [];
  const events = openEventLog(layout.events, () => 0);
  const boxes = openBoxes<SandboxRecord>(layout, events, systemClock, { onChange() {}, onForget() {} });
  const lifecycle = createLifecycle<SandboxRecord, null, never>({
    provider: "test",
    boxes,
    clock: systemClock,
    runtime: {
      requireRoom() {},
      originOf: async () => null,
      recordOf: (common: SandboxRecord) => common,
      reserve: () => ({ recorded: {}, start }),
      capture: async () => ({ origin: null, bytes: 0, [Symbol.dispose]() {} }),
      end: async () => {},
      ended: {},
      removeFiles: async () => {},
      ...runtime,
    } as Partial<TestRuntime> as TestRuntime,
    snapshots: {
      find() {
        throw new Error("no snapshots");
      },
    },
    collectGarbage() {},
    onError: (_box, error) => errors.push(error),
  });
  return { boxes, lifecycle, errors };
}

const { signal } = new AbortController();
const wanted = { request: createSandboxSchema.parse({ idempotencyKey: "key" }), tools: [] };

test("a failed create whose clean-up fails too tells the first failure, leaves no record and frees its key", async () => {
  const { boxes, lifecycle, errors } = setUp({
    start: async () => {
      throw new SlipwayError("sandbox_start_failed", "no launch");
    },
    end: async () => {
      throw new Error("no end");
    },
  });
  const create = () => lifecycle.create({ id: newId("sbx"), ...wanted }, signal);
  await expect(create()).rejects.toMatchObject({ code: "sandbox_start_failed" });
  expect([...boxes.all()]).toEqual([]);
  expect(errors).toMatchObject([{ message: "no end" }]);
  await expect(create()).rejects.toMatchObject({ code: "sandbox_start_failed" });
});

test("a failed start whose clean-up fails too ends in the state error", async () => {
  const record = recordFixture();
  writeRecord(layout.sandboxRecord(record.id), record);
  const { boxes, lifecycle } = setUp({
    start: async () => {
      throw new SlipwayError("sandbox_start_failed", "no launch");
    },
    end: async () => {
      throw new Error("no end");
    },
  });
  await expect(lifecycle.start(record.id, signal)).rejects.toMatchObject({ code: "sandbox_start_failed" });
  expect(boxes.get(record.id).record).toMatchObject({ state: "error", reason: "start_failed" });
});

test("an aborted start leaves the sandbox as it was", async () => {
  const record = recordFixture({ reason: "expired" });
  writeRecord(layout.sandboxRecord(record.id), record);
  const { boxes, lifecycle } = setUp({
    start: async () => {
      throw new SlipwayError("aborted", "given up");
    },
  });
  await expect(lifecycle.start(record.id, signal)).rejects.toMatchObject({ code: "aborted" });
  expect(boxes.get(record.id).record).toMatchObject({ state: "stopped", reason: "expired" });
});

test("without room nothing is created, while what is there can be started, to make room", async () => {
  const record = recordFixture();
  writeRecord(layout.sandboxRecord(record.id), record);
  const requireRoom = () => {
    throw new SlipwayError("out_of_disk", "no room");
  };
  const { boxes, lifecycle } = setUp({ requireRoom });
  const refusal = { code: "out_of_disk", message: "no room" };
  await expect(lifecycle.create({ id: newId("sbx"), ...wanted }, signal)).rejects.toMatchObject(refusal);
  await expect(lifecycle.fork({ id: newId("sbx"), from: record.id, ...wanted }, signal)).rejects.toMatchObject(refusal);
  expect([...boxes.all()].map(({ id }) => id)).toEqual([record.id]);
  await lifecycle.start(record.id, signal);
  expect(boxes.get(record.id).record.state).toBe("running");
});

test("a sandbox that slept past its end is woken with the time that it had left", async () => {
  const now = Date.now();
  const times = { stateChangedAt: now - 3_600_000, expiresAt: now - 1_800_000, endsBy: now - 900_000 };
  const record = recordFixture({ state: "sleeping", reason: "idle", ...times });
  writeRecord(layout.sandboxRecord(record.id), record);
  const ends: number[] = [];
  let isBroken = true;
  const { boxes, lifecycle } = setUp({
    async wake({ record: { expiresAt } }) {
      ends.push(expiresAt);
      if (isBroken) throw new SlipwayError("provider_unavailable", "no start");
    },
  });
  await expect(lifecycle.wake(record.id)).rejects.toMatchObject({ code: "provider_unavailable" });
  expect(boxes.get(record.id).record).toMatchObject({ state: "sleeping", ...times });
  isBroken = false;
  await lifecycle.wake(record.id);
  const woken = boxes.get(record.id).record;
  expect(woken.state).toBe("running");
  expect(woken.expiresAt).toBeGreaterThanOrEqual(now + 1_800_000);
  for (const end of ends) expect(end).toBeGreaterThanOrEqual(now + 1_800_000);
});
