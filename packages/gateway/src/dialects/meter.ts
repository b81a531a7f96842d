import { noUsage } from "@slipway/contract";
import type { ModelEvent, StopReason } from "./conversation.ts";
import type { Meter } from "./dialect.ts";
import { createEstimate } from "./estimate.ts";
import { blankLine, firstByte, markedLines } from "./marked-lines.ts";
import type { Interpreter } from "./stream-reader.ts";

export interface MeterOptions {
  /**
   * Matches every event that reports usage, a stop or a failure. Matching events are parsed, so the same words inside a
   * text mean nothing. All others are not decoded.
   */
  readonly markers: RegExp;
  readonly interpreter: Interpreter;
  readonly readResponse: (body: unknown) => ModelEvent[];
  /** Returns the text of a delta event, to learn what share of its bytes is text. */
  readonly deltaText: (event: unknown) => string;
}

const maxHeldBytes = 32 * 1024 * 1024;
const [newline, openBrace] = [0x0a, 0x7b];

/** A body that begins with a brace is a whole response, anything else a stream of events. */
export function createMeter({ markers, interpreter, readResponse, deltaText }: MeterOptions): Meter {
  const pattern = new RegExp(markers, "g");
  const estimate = createEstimate(deltaText);
  const held = createHeldBytes();
  let [usage, failure] = [noUsage, undefined as Meter["failure"]];
  let stopReason: StopReason | undefined;
  let whole: boolean | undefined;
  let separator: Buffer | undefined;

  return {
    push(chunk) {
      const bytes = Buffer.isBuffer(chunk) ? chunk : Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
      const first = whole === undefined ? firstByte(bytes) : undefined;
      if (first !== undefined) whole = first === openBrace;
      held.add(bytes);
      if (whole === true) estimate.addText(bytes.length);
      else if (bytes.includes(newline)) readEvents();
    },
    get usage() {
      readWhole();
      return usage;
    },
    get reported() {
      readWhole();
      return stopReason !== undefined && usage !== noUsage;
    },
    get complete() {
      readWhole();
      return stopReason !== undefined;
    },
    get stopReason() {
      readWhole();
      return stopReason;
    },
    get failure() {
      readWhole();
      return failure;
    },
    get estimatedOutputTokens() {
      return estimate.tokens;
    },
  };

  /** Reads up to the last blank line: what follows is not whole yet. */
  function readEvents(): void {
    const bytes = held.take();
    separator ??= blankLine(bytes);
    const last = bytes.lastIndexOf(separator);
    const end = last === -1 ? 0 : last + separator.length;
    if (end < bytes.length) held.add(bytes.subarray(end));
    const text = bytes.toString("latin1", 0, end);
    estimate.addEvents(text);
    for (const data of markedLines(bytes, text, pattern)) note(() => interpreter.read(data));
  }

  /** A whole body has no end of its own: it is read when someone asks and it may be over. */
  function readWhole(): void {
    if (whole !== true || stopReason !== undefined || failure !== undefined) return;
    const bytes = held.take();
    held.add(bytes);
    const tail = bytes.toString("latin1", Math.max(0, bytes.length - 8));
    if (tail.trimEnd().endsWith("}")) note(() => readResponse(JSON.parse(bytes.toString())));
  }

  /** Ignores what cannot be read. */
  function note(read: () => ModelEvent[]): void {
    try {
      for (const event of read()) {
        if (stopReason !== undefined || failure !== undefined) return;
        if (event.type === "usage") usage = event.usage;
        else if (event.type === "stop") stopReason = event.reason;
        else if (event.type === "failure") failure = { status: event.status, message: event.message };
      }
    } catch {}
  }
}

/** Bytes of an event that is not whole yet. One that grows past the limit is let go, and with it what it says. */
function createHeldBytes() {
  let chunks: Buffer[] = [];
  let size = 0;
  return {
    add(bytes: Buffer): void {
      size += bytes.length;
      if (size <= maxHeldBytes) chunks.push(bytes);
      else chunks = [];
    },
    take(): Buffer {
      const [first = Buffer.alloc(0)] = chunks;
      const bytes = chunks.length <= 1 ? first : Buffer.concat(chunks);
      chunks = [];
      size = 0;
      return bytes;
    },
  };
}
