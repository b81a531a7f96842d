import { type FileHandle, open } from "node:fs/promises";
import { createLane, type NumberedEvent, type RunnerEvent, runChannel, SlipwayError } from "@slipway/contract";
import { admits } from "./admit.ts";

/**
 * The events of a run on disk, one per line, with consecutive numbers. A killed runner loses nothing appended. Nothing
 * is synced: a machine that dies takes the whole sandbox back, and the host tells which numbers are used.
 */
export interface Spool {
  readonly first: number;
  /** The number of the next event. */
  readonly next: number;
  /** Resolves when the events are in the file. Replaces what finds no room by one note. Fails with `out_of_disk`. */
  append(events: readonly RunnerEvent[]): Promise<void>;
  /** Returns as many events from that number on as fit a batch, as JSON text. */
  read(from: number): Promise<string[]>;
  /** Forgets all events. The next one gets that number. */
  restart(next: number): Promise<void>;
  close(): Promise<void>;
}

/** The frame of a batch around its events. */
const frameBytes = 64;

export async function openSpool(path: string, now: () => number = Date.now): Promise<Spool> {
  const file = await open(path, "a+", 0o600);
  const index = await readIndex(file);
  const inTurn = createLane();
  return {
    get first() {
      return index.first;
    },
    get next() {
      return index.first + index.ends.length;
    },
    append: (events) =>
      inTurn(async () => {
        const lines = toLines(index, events, now());
        await appendWhole(file, Buffer.concat(lines), bytesOf(index));
        for (const { length } of lines) index.ends.push(bytesOf(index) + length);
      }),
    async read(from) {
      const start = from - index.first;
      const limit = bytesOf(index, start) + runChannel.maxBodyBytes - frameBytes;
      const most = Math.min(index.ends.length, start + runChannel.maxBatchEvents);
      let end = start;
      while (end < most && bytesOf(index, end + 1) <= limit) end++;
      const text = await readRange(file, bytesOf(index, start), bytesOf(index, end));
      return text.split("\n").slice(0, -1);
    },
    restart: (next) =>
      inTurn(async () => {
        await file.truncate(0);
        index.ends.length = 0;
        index.first = next;
      }),
    close: () => inTurn(() => file.close()),
  };
}

interface Index {
  first: number;
  /** Where each line ends. */
  readonly ends: number[];
  /** The note about dropped events has been written. */
  isNoted: boolean;
}

function bytesOf({ ends }: Index, lines: number = ends.length): number {
  return ends[lines - 1] ?? 0;
}

const leftOut: RunnerEvent = {
  type: "note",
  agent: "runner",
  text: "The run has sent more than is kept. Some events are missing.",
};

function toLines(index: Index, events: readonly RunnerEvent[], at: number): Buffer[] {
  const lines: Buffer[] = [];
  let bytes = bytesOf(index);
  for (const event of events) {
    const filling = { bytes, next: index.first + index.ends.length + lines.length };
    const isTaken = admits(event, filling);
    if (!isTaken && (index.isNoted || !admits(leftOut, filling))) continue;
    if (!isTaken) index.isNoted = true;
    const numbered: NumberedEvent = { sequence: filling.next, at, event: isTaken ? event : leftOut };
    const line = Buffer.from(`${JSON.stringify(numbered)}\n`);
    bytes += line.length;
    lines.push(line);
  }
  return lines;
}

/** Writes at once. Removes what a full disk took of it. */
async function appendWhole(file: FileHandle, bytes: Buffer, before: number): Promise<void> {
  if (bytes.length === 0) return;
  try {
    await file.appendFile(bytes);
  } catch (error) {
    await file.truncate(before);
    const { code } = error as NodeJS.ErrnoException;
    if (code !== "ENOSPC" && code !== "EDQUOT" && code !== "EFBIG") throw error;
    throw new SlipwayError("out_of_disk", "the disk has no room for the runner's events", { cause: error });
  }
}

const indexBlockBytes = 1024 * 1024;
const headBytes = 64;
const lineFeed = 10;

/** Cuts off a partial last line. Empties a foreign file. */
async function readIndex(file: FileHandle): Promise<Index> {
  const ends: number[] = [];
  const block = Buffer.allocUnsafe(indexBlockBytes);
  let position = 0;
  for (;;) {
    const { bytesRead } = await file.read(block, 0, block.length, position);
    if (bytesRead === 0) break;
    const read = block.subarray(0, bytesRead);
    for (let at = read.indexOf(lineFeed); at >= 0; at = read.indexOf(lineFeed, at + 1)) ends.push(position + at + 1);
    position += bytesRead;
  }
  const { bytesRead } = await file.read(block, 0, headBytes, 0);
  const first = /^\{"sequence":(\d{1,6}),/.exec(block.toString("utf8", 0, bytesRead))?.[1];
  if (first === undefined) ends.length = 0;
  const whole = ends.at(-1) ?? 0;
  if (whole < position) await file.truncate(whole);
  return { first: Number(first ?? 1), ends, isNoted: false };
}

async function readRange(file: FileHandle, start: number, end: number): Promise<string> {
  const bytes = Buffer.allocUnsafe(end - start);
  for (let at = 0; at < bytes.length; ) {
    const { bytesRead } = await file.read(bytes, at, bytes.length - at, start + at);
    if (bytesRead === 0) throw new SlipwayError("internal", "the spool has become shorter");
    at += bytesRead;
  }
  return bytes.toString();
}
