import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { openBoxes } from "../../../../keeper/boxes/boxes.ts";
import { systemClock } from "../../../../keeper/clock.ts";
import { openEventLog } from "../../../../keeper/events/log.ts";
import { writeRecord } from "../../../../keeper/record.ts";
import { type Layout, layoutOf, prepareStateDirectory } from "../../layout.ts";
import type { SandboxRecord } from "../../record.ts";
import { openSpace } from "../watch/space.ts";
import { type CaptureParts, capture } from "./capture.ts";
import { openLayers } from "./layers.ts";
import { recordFixture } from "./record-fixture.ts";

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

const faults: readonly [string, Partial<CaptureParts["hold"]>, Partial<CaptureParts["layerTool"]>][] = [
  ["woken again", { thaw: refuse }, {}],
  ["measured", {}, { measure: refuse }],
];

/** Captures of one sandbox's files, whose parts fail as told. */
function setUp(
  state: "running" | "stopped",
  hold: Partial<CaptureParts["hold"]>,
  tool: Partial<CaptureParts["layerTool"]>,
  space = openSpace(layout.root, 0),
) {
  const record = recordFixture({ state, process: state === "running" ? { pid: 1, startTime: "" } : null });
  writeRecord(layout.sandboxRecord(record.id), record);
  const events = openEventLog(layout.events, () => 0);
  const boxes = openBoxes<SandboxRecord>(layout, events, systemClock, { onChange() {}, onForget() {} });
  const layers = openLayers(layout.layers, null, async (path) => rmSync(path, { recursive: true }));
  const parts = {
    layout,
    boxes,
    layers,
    space,
    hold: {
      freeze: async () => {},
      thaw: async () => {},
      processes: async () => [],
      ...hold,
    } as CaptureParts["hold"],
    layerTool: {
      copy: async ({ to }) => void mkdirSync(to),
      measure: async () => 0,
      ...tool,
    } as CaptureParts["layerTool"],
  };
  return { layers, take: () => capture(parts, boxes.get(record.id)) };
}

test.each(faults)(
  "a copy of a sandbox that cannot be %s leaves no layer that is never collected",
  async (_what, hold, tool) => {
    const { layers, take } = setUp("running", hold, tool);
    await expect(take()).rejects.toThrow("refused");
    expect(await layers.collect(new Set())).toBe(1);
  },
);

test("without room on the disk nothing is copied; what a stopped sandbox has is kept as it is", async () => {
  const space = openSpace(layout.root, Number.MAX_SAFE_INTEGER);
  const { layers, take } = setUp("running", {}, {}, space);
  await expect(take()).rejects.toMatchObject({
    code: "out_of_disk",
    message: expect.stringMatching(/has \d+ MB left on its disk, and sandboxes must leave \d+ MB free/),
  });
  expect(await layers.collect(new Set())).toBe(0);
  await expect(setUp("stopped", {}, {}, space).take()).resolves.toMatchObject({ bytes: 0 });
});
