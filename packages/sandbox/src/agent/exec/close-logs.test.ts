import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { closeExecLogs } from "./close-logs.ts";

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "slipway-logs-"));
});
afterEach(() => rmSync(directory, { recursive: true }));

function frame(type: string, payload: Buffer): Buffer {
  const header = Buffer.alloc(5);
  header.write(type);
  header.writeUInt32LE(payload.length, 1);
  return Buffer.concat([header, payload]);
}

function closed(...frames: Buffer[]): Buffer {
  writeFileSync(join(directory, "log"), Buffer.concat(frames));
  closeExecLogs(directory);
  return readFileSync(join(directory, "log"));
}

const exit = frame("x", Buffer.alloc(33));
const output = frame("o", Buffer.from("hello"));

test("a log with its exit stays as it is", () => {
  expect(closed(output, exit)).toEqual(Buffer.concat([output, exit]));
});

test("a log without an exit ends as lost, with the bytes that it has", () => {
  const log = closed(output, frame("e", Buffer.from("no")));
  const end = log.subarray(output.length + 7);
  expect(end.length).toBe(38);
  expect([end.readInt32LE(5), end[13], end.readBigUInt64LE(22), end.readBigUInt64LE(30)]).toEqual([-1, 4, 5n, 2n]);
});

test("a frame that was cut in the middle goes", () => {
  const log = closed(output, frame("o", Buffer.alloc(100)).subarray(0, 50));
  expect(log.length).toBe(output.length + 38);
});

test("output that looks like an exit is no exit", () => {
  const forged = frame("o", exit);
  expect(closed(forged).length).toBe(forged.length + 38);
});

test("closing twice changes nothing, and a directory that is not there is fine", () => {
  const once = closed(output);
  closeExecLogs(directory);
  expect(readFileSync(join(directory, "log"))).toEqual(once);
  closeExecLogs(join(directory, "none"));
});
