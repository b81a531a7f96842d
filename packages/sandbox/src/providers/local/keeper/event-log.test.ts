import { appendFileSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { newId, type SandboxEvent } from "@slipway/contract";
import { afterEach, beforeEach, expect, test } from "vitest";
import { openEventLog } from "./event-log.ts";

const sandbox = newId("sbx");
let directory: string;
let path: string;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "slipway-events-"));
  path = join(directory, "events.jsonl");
});
afterEach(() => rmSync(directory, { recursive: true }));

const sequences = (after: number): number[] => {
  const seen: SandboxEvent[] = [];
  openEventLog(path, () => 0).subscribe(after, (event) => seen.push(event));
  return seen.map(({ sequence }) => sequence);
};

test("a subscriber gets the kept events after its number, then the live ones, without a gap", () => {
  const log = openEventLog(path, () => 42);
  log.append({ type: "sandbox.adopted", sandbox });
  log.append({ type: "sandbox.adopted", sandbox });
  const seen: SandboxEvent[] = [];
  log.subscribe(1, (event) => seen.push(event));
  log.append({ type: "sandbox.adopted", sandbox });
  expect(seen.map(({ sequence }) => sequence)).toEqual([2, 3]);
  expect(seen[0]).toMatchObject({ at: 42, sandbox });
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
