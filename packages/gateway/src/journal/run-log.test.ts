import { appendFileSync, mkdtempSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { endAs, hasCode, newId, type RunId } from "@slipway/contract";
import { afterEach, beforeEach, expect, test } from "vitest";
import { note, notes } from "../channel/testing.ts";
import type { RunLog } from "../ports/ports.ts";
import { openRunLog } from "./run-log.ts";

let directory: string;
let log: RunLog;
const run = newId("run");
const eventsPath = () => join(directory, `${run}.events.jsonl`);

beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), "slipway-run-log-"));
  log = await openRunLog(directory);
});
afterEach(() => rmSync(directory, { recursive: true }));

const sequences = async (from: RunLog, after = 0) =>
  (await Array.fromAsync(from.read(run, after))).map(({ sequence }) => sequence);

test("events are there after the log is opened anew", async () => {
  await log.append(run, notes(1, 3));
  await log.append(run, notes(4, 5));
  const reopened = await openRunLog(directory);
  expect(await reopened.next(run)).toBe(6);
  expect(await Array.fromAsync(reopened.read(run, 0))).toEqual(notes(1, 5));
  expect(await sequences(reopened, 3)).toEqual([4, 5]);
  expect(await sequences(reopened, 5)).toEqual([]);
});

test("a run that never said anything has no file", async () => {
  expect(await log.next(run)).toBe(1);
  expect(await sequences(log)).toEqual([]);
  expect(await log.orders(run)).toEqual({ messages: [], end: undefined });
  expect(statSync(eventsPath(), { throwIfNoEntry: false })).toBeUndefined();
});

test("a last line that a crash tore is cut, at whatever byte it was torn", async () => {
  await log.append(run, [note(1), note(2, "žluťoučký")]);
  const whole = readFileSync(eventsPath());
  const secondLine = whole.indexOf("\n") + 1;
  for (let length = secondLine; length < whole.length; length++) {
    writeFileSync(eventsPath(), whole);
    truncateSync(eventsPath(), length);
    const reopened = await openRunLog(directory);
    expect(await reopened.next(run)).toBe(2);
    await reopened.append(run, [note(2, "again")]);
    expect(await Array.fromAsync((await openRunLog(directory)).read(run, 0))).toEqual([note(1), note(2, "again")]);
  }
});

test("a file with one torn line is an empty one", async () => {
  writeFileSync(eventsPath(), '{"sequence":1,"at"');
  expect(await log.next(run)).toBe(1);
  await log.append(run, [note(1)]);
  expect(await sequences(await openRunLog(directory))).toEqual([1]);
});

test("events that do not follow are a defect of the caller", async () => {
  await expect(log.append(run, [note(2)])).rejects.toSatisfy((error) => hasCode(error, "internal"));
  await log.append(run, [note(1)]);
  await expect(log.append(run, [note(1)])).rejects.toSatisfy((error) => hasCode(error, "internal"));
  expect(await sequences(log)).toEqual([1]);
});

test("a repeat is told from a forgery, be it one character or the time", async () => {
  await log.append(run, notes(1, 600));
  expect(await log.holds(run, [])).toBe(true);
  expect(await log.holds(run, notes(1, 600))).toBe(true);
  expect(await log.holds(run, notes(599, 600))).toBe(true);
  expect(await log.holds(run, [note(1), note(2, "note 3")])).toBe(false);
  expect(await log.holds(run, [{ ...note(7), at: 2 }])).toBe(false);
  expect(await log.holds(run, [note(600, "a text that is longer than the stored one")])).toBe(false);
  expect(await log.holds(run, [note(600), note(601)])).toBe(false);
});

test("orders are kept in their order, and the first end is the end", async () => {
  await log.order(run, { type: "control", message: { sequence: 1, type: "message", text: "a\nb" } });
  await log.order(run, { type: "end", end: endAs("tampered", "first") });
  await log.order(run, { type: "end", end: endAs("flooded", "second") });
  const kept = await (await openRunLog(directory)).orders(run);
  expect(kept.messages).toEqual([{ sequence: 1, type: "message", text: "a\nb" }]);
  expect(kept.end).toEqual(endAs("tampered", "first"));
});

test("large logs are read in pieces, whole and in order", async () => {
  const text = "x".repeat(15_000);
  for (let from = 1; from <= 300; from += 100) {
    await log.append(
      run,
      notes(from, from + 99).map(({ sequence }) => note(sequence, text)),
    );
  }
  expect(await sequences(await openRunLog(directory))).toEqual(Array.from({ length: 300 }, (_, i) => i + 1));
});

test("a reader that began before an append never sees half of it", async () => {
  await log.append(run, notes(1, 3));
  const reader = log.read(run, 0)[Symbol.asyncIterator]();
  await reader.next();
  appendFileSync(eventsPath(), '{"sequence":4');
  const rest = [];
  for (let each = await reader.next(); !each.done; each = await reader.next()) rest.push(each.value.sequence);
  expect(rest).toEqual([2, 3]);
});

test("after a failed append nothing of it is there and the next one goes through", async () => {
  await log.append(run, [note(1)]);
  rmSync(directory, { recursive: true });
  await expect(log.append(run, [note(2)])).rejects.toMatchObject({ code: "ENOENT" });
  log = await openRunLog(directory);
  await log.append(run, [note(1)]);
  expect(await sequences(log)).toEqual([1]);
});

test("a name that is no run's id reaches no file", async () => {
  await expect(log.next("../../etc/passwd" as RunId)).rejects.toSatisfy((error) => hasCode(error, "invalid_request"));
  await expect(log.append("run_/x" as RunId, [note(1)])).rejects.toSatisfy((error) =>
    hasCode(error, "invalid_request"),
  );
});
