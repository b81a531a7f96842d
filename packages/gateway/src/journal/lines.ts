import { closeSync, ftruncateSync, openSync, readSync, writeSync } from "node:fs";
import { SlipwayError } from "@slipway/contract";

/** A file of JSON lines that only grows. */
export interface LineFile {
  /** One write; the line survives the death of this process from then on. A crash of the whole machine may take the last ones. */
  append(entry: unknown): void;
  close(): void;
}

const readBytes = 1024 * 1024;
const newline = 10;

/** Gives every line to `take`, cuts off a last one that a crash has torn, and goes on after it. */
export function openLines(path: string, take: (entry: unknown, line: number) => void): LineFile {
  const file = openSync(path, "a+", 0o600);
  let bytes: number;
  try {
    bytes = readLines(file, take);
    ftruncateSync(file, bytes);
  } catch (error) {
    closeSync(file);
    throw error;
  }
  return {
    append(entry) {
      const line = Buffer.from(`${JSON.stringify(entry)}\n`);
      if (writeSync(file, line) === line.length) {
        bytes += line.length;
        return;
      }
      // A disk that fills up takes a part of a line: without it the next line stays readable.
      ftruncateSync(file, bytes);
      throw new SlipwayError("out_of_disk", `${path} could not take an entry`);
    },
    close: () => closeSync(file),
  };
}

/** Answers how many bytes are whole lines. */
function readLines(file: number, take: (entry: unknown, line: number) => void): number {
  const chunk = Buffer.alloc(readBytes);
  let rest = Buffer.alloc(0);
  let line = 0;
  let position = 0;
  for (;;) {
    const count = readSync(file, chunk, 0, readBytes, position);
    if (count === 0) return position - rest.length;
    position += count;
    rest = Buffer.concat([rest, chunk.subarray(0, count)]);
    let start = 0;
    for (let end = rest.indexOf(newline); end !== -1; end = rest.indexOf(newline, start)) {
      take(JSON.parse(rest.toString("utf8", start, end)), ++line);
      start = end + 1;
    }
    rest = rest.subarray(start);
  }
}
