import { newId, SlipwayError } from "@slipway/contract";
import { expect, test } from "vitest";
import { manualClock } from "../../../../keeper/clock-fixture.ts";
import type { Box } from "../boxes/boxes.ts";
import { startFloorWatch } from "./floor.ts";
import { openSpace } from "./space.ts";

const gibibyte = 1024 ** 3;

/** A disk of which the test says how much is free, with sandboxes of which it says how much they have written. */
function setUp(writtenBytes: number[], { state = "running", isFirm = true } = {}) {
  const clock = manualClock();
  const disk = { freeBytes: 100 * gibibyte, looks: 0, asked: 0 };
  const boxes = writtenBytes.map(() => ({ id: newId("sbx"), record: { state } }) as unknown as Box);
  const takenBytes: number[] = [];
  const ended: string[] = [];
  const errors: unknown[] = [];
  const settings = { onEnd: (_: number) => {} };
  startFloorWatch({
    boxes: { all: () => boxes },
    hold: { isFirm },
    lifecycle: {
      async end(id, reason) {
        const index = boxes.findIndex((box) => box.id === id);
        ended.push(`${index} ${reason}`);
        const [box] = boxes.filter((each) => each.id === id);
        if (box !== undefined) box.record = { ...box.record, state: "stopped" };
        settings.onEnd(index);
      },
    },
    space: openSpace("/", gibibyte, (() => {
      disk.looks++;
      return { bavail: disk.freeBytes, bsize: 1 };
    }) as never),
    clock,
    writtenBytes: async (box) => {
      disk.asked++;
      return writtenBytes[boxes.indexOf(box)] ?? 0;
    },
    takenBytes: async (box) => takenBytes[boxes.indexOf(box)] ?? 0,
    onError: (_box, error) => errors.push(error),
  });
  return { clock, disk, boxes, ended, errors, settings, writtenBytes, takenBytes };
}

test("far from the floor nobody is asked what it writes", async () => {
  const { clock, disk, ended } = setUp([50 * gibibyte]);
  await clock.advance(10_000);
  expect({ asked: disk.asked, ended }).toEqual({ asked: 0, ended: [] });
  expect(disk.looks).toBeLessThan(25);
});

test("under the floor those that write are stopped, who writes most first, until there is room", async () => {
  const { clock, disk, ended, settings, writtenBytes } = setUp([gibibyte, 9 * gibibyte, 0, 0]);
  disk.freeBytes = 1.5 * gibibyte;
  await clock.advance(1000);
  expect(ended).toEqual([]);
  // What was written before is nobody's fault now.
  writtenBytes.splice(0, 4, 1.2 * gibibyte, 9 * gibibyte, 0.3 * gibibyte, 0.1 * gibibyte);
  disk.freeBytes = 0.9 * gibibyte;
  settings.onEnd = (index) => {
    if (index === 0) disk.freeBytes = 2 * gibibyte;
  };
  await clock.advance(5000);
  expect(ended).toEqual(["2 host_out_of_disk", "0 host_out_of_disk"]);
});

test("a disk that others have filled stops no sandbox that writes nothing", async () => {
  const { clock, disk, ended, boxes, writtenBytes } = setUp([gibibyte, gibibyte]);
  disk.freeBytes = 1.5 * gibibyte;
  await clock.advance(1000);
  disk.freeBytes = 0;
  await clock.advance(60_000);
  expect(ended).toEqual([]);
  writtenBytes[1] = 1.01 * gibibyte;
  await clock.advance(1000);
  expect(ended).toEqual(["1 host_out_of_disk"]);
  expect(boxes[0]?.record.state).toBe("running");
});

test("one that comes to the floor between two looks is known by all that it has written", async () => {
  const { clock, disk, ended } = setUp([gibibyte, 4 * gibibyte]);
  disk.freeBytes = gibibyte / 4;
  await clock.advance(1000);
  expect(ended[0]).toBe("1 host_out_of_disk");
});

test("what processes wrote that nobody waited for hides nothing of what comes after", async () => {
  const { clock, disk, ended, writtenBytes } = setUp([gibibyte]);
  disk.freeBytes = 1.5 * gibibyte;
  await clock.advance(1000);
  disk.freeBytes = 0.9 * gibibyte;
  writtenBytes[0] = 0;
  await clock.advance(1000);
  writtenBytes[0] = gibibyte / 2;
  await clock.advance(1000);
  expect(ended).toEqual(["0 host_out_of_disk"]);
});

test("what is written by processes that nobody waits for is known by what there is", async () => {
  const { clock, disk, ended, takenBytes } = setUp([0, 0]);
  takenBytes.push(3 * gibibyte, gibibyte);
  disk.freeBytes = 0.9 * gibibyte;
  await clock.advance(1000);
  expect(ended).toEqual([]);
  takenBytes[1] = 1.1 * gibibyte;
  disk.freeBytes = 0.8 * gibibyte;
  await clock.advance(1000);
  expect(ended).toEqual(["1 host_out_of_disk"]);
});

test.each([
  ["is left alone where nothing in it can go on", true, []],
  ["is stopped where its programs can go on", false, ["0 host_out_of_disk"]],
])("a sleeping sandbox %s", async (_, isFirm, expected) => {
  const { clock, disk, ended } = setUp([gibibyte], { state: "sleeping", isFirm });
  disk.freeBytes = 0;
  await clock.advance(1000);
  expect(ended).toEqual(expected);
});

test("the nearer the floor, the more often the disk is looked at", async () => {
  const { clock, disk } = setUp([]);
  await clock.advance(1000);
  disk.freeBytes = 1.1 * gibibyte;
  disk.looks = 0;
  await clock.advance(11_000);
  expect(disk.looks).toBeGreaterThan(80);
});

test("a sandbox that cannot be ended is told of, and the others are looked after", async () => {
  const { clock, disk, ended, errors, settings } = setUp([2 * gibibyte, gibibyte]);
  settings.onEnd = (index) => {
    if (index === 0) throw new SlipwayError("internal", "it does not end");
  };
  disk.freeBytes = 0;
  await clock.advance(2000);
  expect(ended).toEqual(["0 host_out_of_disk", "1 host_out_of_disk"]);
  expect(errors).toHaveLength(1);
});
