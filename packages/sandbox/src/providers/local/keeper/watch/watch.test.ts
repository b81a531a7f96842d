import { newId } from "@slipway/contract";
import { expect, test } from "vitest";
import { manualClock } from "../../../../keeper/clock-fixture.ts";
import { layoutOf } from "../../layout.ts";
import type { Box } from "../boxes/boxes.ts";
import { openSpace } from "./space.ts";
import { startWatch, type WatchParts } from "./watch.ts";

const mebibyte = 1024 * 1024;

/** A disk of which the test says how much is used, with one sandbox of which it says how much it takes. */
function setUp(state: string, isFirm = true) {
  const clock = manualClock();
  const disk = { usedBytes: 0, measures: [] as number[] };
  const box = { id: newId("sbx"), record: { state, process: null, request: { diskMb: 16 } } };
  const boxes: Box[] = [];
  const ended: string[] = [];
  startWatch({
    layout: layoutOf("/nowhere"),
    boxes: { all: () => boxes },
    hold: { isFirm, oomKills: async () => 0, toldOomKills: new WeakMap() },
    layerTool: { measure: async () => disk.measures.shift() ?? 0 },
    lifecycle: {
      async end(_id: unknown, reason: string, isDue: () => Promise<boolean>) {
        if (await isDue()) ended.push(`${clock.now()} ${reason}`);
      },
    },
    space: openSpace("/", 0, (() => ({ blocks: disk.usedBytes, bfree: 0, bsize: 1 })) as never),
    clock,
    onError: (_box: unknown, error: unknown) => ended.push(String(error)),
  } as unknown as WatchParts);
  return { clock, disk, ended, create: () => boxes.push(box as unknown as Box) };
}

test("what a sandbox writes before it is first looked at counts from then on", async () => {
  const { clock, disk, ended, create } = setUp("running");
  await clock.advance(1500);
  create();
  disk.usedBytes = 32 * mebibyte;
  disk.measures = [32 * mebibyte, 32 * mebibyte];
  await clock.advance(500);
  expect(ended).toEqual(["2000 out_of_disk"]);
});

test("a sandbox that is over its limit at one count and not at the next is left alone", async () => {
  const { clock, disk, ended, create } = setUp("running");
  create();
  disk.usedBytes = 32 * mebibyte;
  disk.measures = [32 * mebibyte, 8 * mebibyte];
  await clock.advance(1000);
  expect({ ended, left: disk.measures }).toEqual({ ended: [], left: [] });
});

test.each([
  ["is not looked at where nothing in it can go on", true, []],
  ["is looked at where its programs can go on", false, ["1000 out_of_disk"]],
])("a sleeping sandbox %s", async (_, isFirm, expected) => {
  const { clock, disk, ended, create } = setUp("sleeping", isFirm);
  create();
  disk.usedBytes = 32 * mebibyte;
  disk.measures = [32 * mebibyte, 32 * mebibyte];
  await clock.advance(1000);
  expect(ended).toEqual(expected);
});
