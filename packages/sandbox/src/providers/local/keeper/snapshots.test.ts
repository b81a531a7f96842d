import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { newId } from "@slipway/contract";
import { afterEach, beforeEach, expect, test } from "vitest";
import { type Layout, layoutOf, prepareStateDirectory } from "../layout.ts";
import { writeRecord } from "../record.ts";
import { openBoxes } from "./boxes.ts";
import { systemClock } from "./clock.ts";
import { openEventLog } from "./event-log.ts";
import { openLayers } from "./layers.ts";
import { recordFixture } from "./record-fixture.ts";
import { openSnapshots, type SnapshotParts } from "./snapshots.ts";
import { openSpace } from "./space.ts";

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

test.each(faults)(
  "a copy of a sandbox that can not be %s leaves no layer that is never collected",
  async (_what, hold, tool) => {
    const record = recordFixture({ state: "running", process: { pid: 1, startTime: "" } });
    writeRecord(layout.sandboxRecord(record.id), record);
    const events = openEventLog(layout.events, () => 0);
    const boxes = openBoxes(layout, events, systemClock, { onChange() {}, onForget() {} });
    const layers = openLayers(layout.layers, null, async (path) => rmSync(path, { recursive: true }));
    const snapshots = openSnapshots({
      space: openSpace(layout.root, 0),
      ...{ layout, boxes, layers, events, clock: systemClock, collectGarbage() {} },
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
    await expect(snapshots.create(record.id, newId("snp"), { name: null, expiresInMs: null })).rejects.toThrow(
      "refused",
    );
    expect(await layers.collect(new Set())).toBe(1);
  },
);
