import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { newId } from "@slipway/contract";
import { afterEach, beforeEach, expect, test } from "vitest";
import { type Layout, layoutOf, prepareStateDirectory } from "../../layout.ts";
import { writeRecord } from "../../record.ts";
import { systemClock } from "../clock.ts";
import { openEventLog } from "../events/log.ts";
import { openSpace } from "../watch/space.ts";
import { openBoxes } from "./boxes.ts";
import { openLayers } from "./layers.ts";
import { recordFixture } from "./record-fixture.ts";
import { openSnapshots, type SnapshotParts } from "./snapshots.ts";

let root: string;
let layout: Layout;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "slipway-"));
  layout = layoutOf(join(root, "state"));
  prepareStateDirectory(layout, process.getuid?.() ?? 0);
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

async function refuse(): Promise<never> {
  throw new Error("refused");
}

const faults: readonly [string, Partial<SnapshotParts["hold"]>, Partial<SnapshotParts["layerTool"]>][] = [
  ["woken again", { thaw: refuse }, {}],
  ["measured", {}, { measure: refuse }],
];

/** Snapshots of one sandbox, whose parts fail as told. */
function setUp(
  state: "running" | "stopped",
  hold: Partial<SnapshotParts["hold"]>,
  tool: Partial<SnapshotParts["layerTool"]>,
  space = openSpace(layout.root, 0),
) {
  const record = recordFixture({ state, process: state === "running" ? { pid: 1, startTime: "" } : null });
  writeRecord(layout.sandboxRecord(record.id), record);
  const events = openEventLog(layout.events, () => 0);
  const boxes = openBoxes(layout, events, systemClock, { onChange() {}, onForget() {} });
  const layers = openLayers(layout.layers, null, async (path) => rmSync(path, { recursive: true }));
  const snapshots = openSnapshots({
    layout,
    boxes,
    layers,
    events,
    space,
    clock: systemClock,
    collectGarbage() {},
    hold: {
      freeze: async () => {},
      thaw: async () => {},
      processes: async () => [],
      ...hold,
    } as SnapshotParts["hold"],
    layerTool: {
      copy: async ({ to }) => void mkdirSync(to),
      measure: async () => 0,
      ...tool,
    } as SnapshotParts["layerTool"],
  });
  return {
    layers,
    create: () => snapshots.create({ id: record.id, snapshot: newId("snp"), name: null, expiresInMs: null }),
  };
}

test.each(faults)(
  "a copy of a sandbox that cannot be %s leaves no layer that is never collected",
  async (_what, hold, tool) => {
    const { layers, create } = setUp("running", hold, tool);
    await expect(create()).rejects.toThrow("refused");
    expect(await layers.collect(new Set())).toBe(1);
  },
);

test("without room on the disk nothing is copied; what a stopped sandbox has is kept as it is", async () => {
  const space = openSpace(layout.root, Number.MAX_SAFE_INTEGER);
  const { layers, create } = setUp("running", {}, {}, space);
  await expect(create()).rejects.toMatchObject({ code: "out_of_disk" });
  expect(await layers.collect(new Set())).toBe(0);
  await expect(setUp("stopped", {}, {}, space).create()).resolves.toMatchObject({ bytes: 0 });
});
