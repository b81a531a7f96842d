import { open, truncate } from "node:fs/promises";
import { dirname } from "node:path";

/** A file of lines that only grows. Lines are numbered from 0; an index of where each ends makes any of them cheap to reach. */
export interface IndexedLines {
  readonly count: number;
  readonly bytes: number;
  /** One write for all of them; answers when they are durable. One call at a time. After a failure the file is to be opened anew. */
  append(lines: readonly string[]): Promise<void>;
  /** The line `from` and those behind it, until so many bytes are passed or there are no more. */
  read(from: number, maxBytes: number): Promise<string[]>;
}

/** Cuts off what a crash left of a last line. A file that is missing is empty. */
export async function openIndexedLines(path: string): Promise<IndexedLines> {
  const ends = await indexLines(path);
  const endOf = (count: number) => (count === 0 ? 0 : (ends[count - 1] as number));
  return {
    get count() {
      return ends.length;
    },
    get bytes() {
      return endOf(ends.length);
    },
    async append(lines) {
      const texts = lines.map((line) => Buffer.from(`${line}\n`));
      await appendDurably(path, Buffer.concat(texts), ends.length === 0);
      for (const { length } of texts) ends.push(endOf(ends.length) + length);
    },
    async read(from, maxBytes) {
      let to = from;
      while (to < ends.length && endOf(to) - endOf(from) < maxBytes) to++;
      if (to === from) return [];
      const text = await readRange(path, endOf(from), endOf(to));
      return text.split("\n").slice(0, -1);
    },
  };
}

const indexBlockBytes = 1024 * 1024;
const lineFeed = 10;

async function indexLines(path: string): Promise<number[]> {
  const file = await open(path, "r").catch(undefinedWhenMissing);
  if (file === undefined) return [];
  await using _open = file;
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
  const whole = ends.at(-1) ?? 0;
  if (whole < position) await truncate(path, whole);
  return ends;
}

async function appendDurably(path: string, bytes: Buffer, isFirst: boolean): Promise<void> {
  await using file = await open(path, "a", 0o600);
  await file.appendFile(bytes);
  await file.datasync();
  if (!isFirst) return;
  await using directory = await open(dirname(path), "r");
  await directory.sync();
}

async function readRange(path: string, start: number, end: number): Promise<string> {
  await using file = await open(path, "r");
  const bytes = Buffer.allocUnsafe(end - start);
  for (let at = 0; at < bytes.length; ) {
    const { bytesRead } = await file.read(bytes, at, bytes.length - at, start + at);
    if (bytesRead === 0) throw new Error(`${path} has become shorter`);
    at += bytesRead;
  }
  return bytes.toString();
}

function undefinedWhenMissing(error: NodeJS.ErrnoException): undefined {
  if (error.code === "ENOENT") return undefined;
  throw error;
}
