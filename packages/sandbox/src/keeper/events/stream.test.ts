import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { newId } from "@slipway/contract";
import { afterEach, beforeEach, expect, test } from "vitest";
import { type EventLog, openEventLog } from "./log.ts";
import { streamEvents } from "./stream.ts";

const sandbox = newId("sbx");
let directory: string;
let log: EventLog;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "slipway-events-"));
  log = openEventLog(join(directory, "events.jsonl"), () => 0);
});
afterEach(() => rmSync(directory, { recursive: true }));

const append = (count: number) => {
  for (let i = 0; i < count; i++) log.append({ type: "sandbox.adopted", sandbox });
};

/** Takes as many events at a time as it has room for. */
function reader(room: number) {
  const seen: number[] = [];
  let drained = () => {};
  let left = room;
  return {
    seen,
    drain() {
      left = room;
      drained();
    },
    sink: {
      send: ({ sequence }: { sequence: number }) => {
        seen.push(sequence);
        return --left > 0;
      },
      onceDrained: (callback: () => void) => {
        drained = callback;
      },
    },
  };
}

test("a reader gets the kept events after its number, then the new ones, without a gap", () => {
  append(2);
  const { seen, sink } = reader(10);
  streamEvents(log, 1, sink);
  append(1);
  expect(seen).toEqual([2, 3]);
});

test("a reader that takes no more is sent no more, and misses nothing when it goes on", () => {
  append(4);
  const { seen, sink, drain } = reader(3);
  streamEvents(log, 0, sink);
  append(1000);
  expect(seen).toEqual([1, 2, 3]);
  drain();
  append(1);
  expect(seen).toEqual([1, 2, 3, 4, 5, 6]);
  while (seen.length < 1005) drain();
  drain();
  append(1);
  expect(seen).toEqual(Array.from({ length: 1006 }, (_, i) => i + 1));
});

test("a reader whose number is ahead of the log gets what is new", () => {
  append(1);
  const { seen, sink } = reader(10);
  streamEvents(log, 99, sink);
  append(1);
  expect(seen).toEqual([2]);
});

test("a reader that has left is sent nothing", () => {
  const { seen, sink } = reader(10);
  streamEvents(log, 0, sink)();
  append(1);
  expect(seen).toEqual([]);
});
