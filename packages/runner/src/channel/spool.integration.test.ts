import { execFile } from "node:child_process";
import { appendFileSync, readFileSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { type NumberedEvent, runChannel } from "@slipway/contract";
import { afterEach, beforeEach, expect, test } from "vitest";
import { admits } from "./admit.ts";
import { openSpool, type Spool } from "./spool.ts";
import { ended, note, text } from "./testing/events.ts";
import { createTestPlace, type TestPlace } from "./testing/place.ts";

let place: TestPlace;
let path: string;
let spool: Spool;
beforeEach(async () => {
  place = createTestPlace();
  path = join(place.directory, "events.jsonl");
  spool = await openSpool(path, () => 7);
});
afterEach(async () => {
  await spool.close();
  place[Symbol.dispose]();
});

async function reopen(): Promise<void> {
  await spool.close();
  spool = await openSpool(path, () => 7);
}

const read = async (from: number) => (await spool.read(from)).map((line) => JSON.parse(line) as NumberedEvent);

test("events are numbered in the order in which they are appended", async () => {
  await Promise.all([spool.append([note("a"), note("b")]), spool.append([note("c")])]);
  expect(await read(1)).toEqual(["a", "b", "c"].map((each, i) => ({ sequence: i + 1, at: 7, event: note(each) })));
  expect(await read(3)).toHaveLength(1);
  expect(await read(4)).toEqual([]);
});

test("numbers continue after a restart, even if the last line is torn at any byte", async () => {
  await spool.append([note("a"), note("ž")]);
  const whole = readFileSync(path);
  for (let length = whole.indexOf("\n") + 1; length < whole.length; length++) {
    writeFileSync(path, whole);
    truncateSync(path, length);
    await reopen();
    expect(spool.next).toBe(2);
    await spool.append([note("again")]);
    expect((await read(2))[0]).toMatchObject({ sequence: 2, event: note("again") });
  }
});

test("a restart with fewer events than the host has skips the used numbers, also after the next restart", async () => {
  await spool.append([note("a"), note("b")]);
  await spool.restart(41);
  await spool.append([note("c")]);
  await reopen();
  expect([spool.first, spool.next]).toEqual([41, 42]);
  expect(await read(41)).toMatchObject([{ sequence: 41, event: note("c") }]);
});

test("an invalid spool file is emptied", async () => {
  appendFileSync(path, "what\nis this\n");
  await reopen();
  expect([spool.first, spool.next]).toEqual([1, 1]);
  expect(readFileSync(path, "utf8")).toBe("");
});

test("a batch holds no more events and bytes than the host takes", async () => {
  await spool.append(Array.from({ length: 300 }, (_, i) => note(String(i))));
  expect(await read(1)).toHaveLength(runChannel.maxBatchEvents);
  await spool.append(Array.from({ length: 100 }, () => note("x".repeat(16 * 1024))));
  const lines = await spool.read(301);
  expect(lines.length).toBeGreaterThan(50);
  expect(Buffer.byteLength(`{"events":[${lines.join(",")}]}`)).toBeLessThanOrEqual(runChannel.maxBodyBytes);
});

test("a full spool drops text first, then other events, and ends never", () => {
  const done = {
    type: "agent",
    agent: "lead",
    event: { type: "ended", end: { reason: "completed", message: "" } },
  } as const;
  const megabyte = 1024 * 1024;
  const admitted = (bytes: number, next: number) =>
    [text("t"), note("n"), done, ended].filter((event) => admits(event, { bytes, next })).length;
  expect(admitted(255 * megabyte, 1)).toBe(4);
  expect(admitted(256 * megabyte, 1)).toBe(3);
  expect(admitted(320 * megabyte, 1)).toBe(2);
  expect(admitted(0, 195_000)).toBe(4);
  expect(admitted(0, 196_000)).toBe(3);
  expect(admitted(0, 199_800)).toBe(2);
  expect(admitted(0, 200_000)).toBe(1);
  expect(admitted(0, 200_001)).toBe(0);
});

test("dropped events are noted once", async () => {
  await spool.restart(196_500);
  await spool.append([text("a"), text("b"), note("n"), text("c"), ended]);
  const kept = (await read(196_500)).map(({ event }) => event);
  expect(kept).toEqual([expect.objectContaining({ type: "note", agent: "runner" }), note("n"), ended]);
});

test("a full disk fails the event that does not fit, tears no line and uses up no number", async () => {
  const program = fileURLToPath(new URL("full-disk-fixture.ts", import.meta.url));
  const limited = ["-c", 'ulimit -f 4; exec "$@"', "sh", process.execPath, program, path];
  const { stdout } = await promisify(execFile)("sh", limited);
  const { code, next, last } = JSON.parse(stdout);
  expect(code).toBe("out_of_disk");
  expect(last.map((line: string) => JSON.parse(line))).toMatchObject([{ sequence: next, event: note("fits") }]);
  await reopen();
  expect(spool.next).toBe(next + 1);
  expect(await read(1)).toHaveLength(next);
});
