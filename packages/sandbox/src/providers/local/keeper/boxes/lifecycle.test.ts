import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createSandboxSchema, newId, SlipwayError } from "@slipway/contract";
import { afterEach, beforeEach, expect, test } from "vitest";
import { type Layout, layoutOf, prepareStateDirectory } from "../../layout.ts";
import { writeRecord } from "../../record.ts";
import { systemClock } from "../clock.ts";
import { openEventLog } from "../events/log.ts";
import { openSpace } from "../watch/space.ts";
import { openBoxes } from "./boxes.ts";
import { createLifecycle, type LifecycleParts } from "./lifecycle.ts";
import { recordFixture } from "./record-fixture.ts";

let root: string;
let layout: Layout;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "slipway-"));
  layout = layoutOf(join(root, "state"));
  prepareStateDirectory(layout, process.getuid?.() ?? 0);
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

/** A lifecycle over a runtime that fails as told. */
function setUp(runtime: Partial<LifecycleParts["runtime"]>, minFreeBytes = 0) {
  const errors: unknown[] = [];
  const events = openEventLog(layout.events, () => 0);
  const boxes = openBoxes(layout, events, systemClock, { onChange() {}, onForget() {} });
  const lifecycle = createLifecycle({
    layout,
    boxes,
    clock: systemClock,
    space: openSpace(layout.root, minFreeBytes),
    runtime: { reserve: () => ({ cgroups: [] }), end: async () => {}, ...runtime } as LifecycleParts["runtime"],
    hold: {} as LifecycleParts["hold"],
    origin: async () => ({ image: { kind: "host", layers: [] }, lowers: [] }),
    layersOf: async () => ({ lowers: [], [Symbol.dispose]() {} }),
    removeTree: async () => {},
    collectGarbage() {},
    onError: (_box, error) => errors.push(error),
  });
  return { boxes, lifecycle, errors };
}

const { signal } = new AbortController();
const wanted = { request: createSandboxSchema.parse({ idempotencyKey: "key" }), tools: [] };

test("a failed create whose clean-up fails too tells the first failure, leaves no record and frees its key", async () => {
  const { boxes, lifecycle, errors } = setUp({
    launch: async () => {
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
    launch: async () => {
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
    launch: async () => {
      throw new SlipwayError("aborted", "given up");
    },
  });
  await expect(lifecycle.start(record.id, signal)).rejects.toMatchObject({ code: "aborted" });
  expect(boxes.get(record.id).record).toMatchObject({ state: "stopped", reason: "expired", process: null });
});

test("without room on the disk nothing is created, while what is there can be started, to make room", async () => {
  const record = recordFixture();
  writeRecord(layout.sandboxRecord(record.id), record);
  const { boxes, lifecycle } = setUp({ launch: async () => {} }, Number.MAX_SAFE_INTEGER);
  const message = /has \d+ MB left on its disk, and sandboxes must leave \d+ MB free/;
  const refusal = { code: "out_of_disk", message: expect.stringMatching(message) };
  await expect(lifecycle.create({ id: newId("sbx"), ...wanted }, signal)).rejects.toMatchObject(refusal);
  await expect(lifecycle.fork({ id: newId("sbx"), from: record.id, ...wanted }, signal)).rejects.toMatchObject(refusal);
  expect([...boxes.all()].map(({ id }) => id)).toEqual([record.id]);
  await lifecycle.start(record.id, signal);
  expect(boxes.get(record.id).record.state).toBe("running");
});
