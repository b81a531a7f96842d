import { appendFileSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { newId, type SandboxEvent } from "@slipway/contract";
import { afterEach, beforeEach, expect, test } from "vitest";
import { openEventLog } from "./log.ts";

const sandbox = newId("sbx");
let directory: string;
let path: string;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "slipway-events-"));
  path = join(directory, "events.jsonl");
});
afterEach(() => rmSync(directory, { recursive: true }));

const sequences = (after: number): number[] => {
  return openEventLog(path, () => 0)
    .after(after)
    .map(({ sequence }) => sequence);
};

test("kept events are told from a number on, new ones to those who listen", () => {
  const log = openEventLog(path, () => 42);
  const seen: SandboxEvent[] = [];
  log.append({ type: "sandbox.adopted", sandbox });
  const stop = log.listen((event) => seen.push(event));
  log.append({ type: "sandbox.adopted", sandbox });
  stop();
  log.append({ type: "sandbox.adopted", sandbox });
  expect(log.after(1).map(({ sequence }) => sequence)).toEqual([2, 3]);
  expect(seen).toMatchObject([{ sequence: 2, at: 42, sandbox }]);
});

test("an event that could be written only in part never happened, and spoils no other", () => {
  let room = Number.POSITIVE_INFINITY;
  const log = openEventLog(
    path,
    () => 0,
    (file, line) => {
      appendFileSync(file, line.slice(0, room));
      if (line.length > room) throw new Error("no space left on device");
    },
  );
  const append = (message: string) => log.append({ type: "snapshot.failed", sandbox, message });
  append("é".repeat(9));
  for (room of [0, 20, 80]) expect(() => append("cut")).toThrow("no space");
  room = Number.POSITIVE_INFINITY;
  append("after");
  expect(log.after(0)).toMatchObject([{ sequence: 1 }, { sequence: 2, message: "after" }]);
});

test("numbers go on over a restart", () => {
  openEventLog(path, () => 0).append({ type: "sandbox.adopted", sandbox });
  openEventLog(path, () => 0).append({ type: "sandbox.adopted", sandbox });
  expect(sequences(0)).toEqual([1, 2]);
});

test("a line that a crash cut short is overwritten by nothing and read by nobody", () => {
  openEventLog(path, () => 0).append({ type: "sandbox.adopted", sandbox });
  appendFileSync(path, '{"sequence":2,"at":0,"ty');
  openEventLog(path, () => 0).append({ type: "sandbox.adopted", sandbox });
  expect(sequences(0)).toEqual([1, 2]);
});

test("the log stays bounded and keeps its newest events", () => {
  const log = openEventLog(path, () => 0);
  const message = "x".repeat(1024 * 1024);
  for (let i = 0; i < 30; i++) log.append({ type: "snapshot.failed", sandbox, message });
  const kept = sequences(0);
  expect(kept.at(-1)).toBe(30);
  expect(kept.length).toBeLessThan(17);
  expect(kept).toEqual(kept.map((_, i) => (kept[0] ?? 0) + i));
});
