import { type ExecChunk, type ExecOffsets, execLogLimitBytes } from "@slipway/contract";
import { Notifier, throwIfAborted } from "./notifier.ts";

type Stream = "stdout" | "stderr";
type Chunk = Extract<ExecChunk, { type: Stream }>;

/** How far a reader may fall behind before the command waits for it. */
const mostBehindBytes = 1024 * 1024;

interface Reader {
  /** Number of the next chunk. */
  next: number;
  /** Bytes of chunks that have come and were not taken. */
  behind: number;
}

/** A command's output. The first part is kept for good; what comes after it only until its live readers have it. */
export class ExecLog {
  readonly #kept: Chunk[] = [];
  #keptBytes = 0;
  /** Chunks after the kept ones; the first has number `#kept.length + #passed`. */
  #overflow: Chunk[] = [];
  #passed = 0;
  readonly #offsets = { stdout: 0, stderr: 0 };
  readonly #readers = new Set<Reader>();
  readonly #changed = new Notifier();
  readonly #room = new Notifier();
  #ended = false;

  get offsets(): ExecOffsets {
    return this.#offsets;
  }

  /** Resolves when no reader is too far behind. */
  async append(type: Stream, data: Uint8Array, signal: AbortSignal): Promise<void> {
    if (data.length === 0) return;
    const chunk: Chunk = { type, offset: this.#offsets[type], data };
    this.#offsets[type] += data.length;
    const keeps =
      this.#overflow.length === 0 && this.#passed === 0 && this.#keptBytes + data.length <= execLogLimitBytes;
    if (keeps) {
      this.#kept.push(chunk);
      this.#keptBytes += data.length;
    } else {
      this.#overflow.push(chunk);
      this.#trim();
    }
    for (const reader of this.#readers) reader.behind += data.length;
    this.#changed.notify();
    while (this.#slowestBehind() > mostBehindBytes) await this.#room.wait(signal);
  }

  end(): void {
    this.#ended = true;
    this.#changed.notify();
  }

  /** A reader is a live one when nothing is gone yet for it; a later one is told where the kept log ends. */
  async *read(from: ExecOffsets, signal: AbortSignal | undefined): AsyncGenerator<ExecChunk> {
    const late = this.#passed > 0;
    const reader: Reader = { next: 0, behind: late ? 0 : this.#keptBytes + sizeOf(this.#overflow) };
    if (!late) this.#readers.add(reader);
    try {
      for (;;) {
        throwIfAborted(signal);
        const chunk = late ? this.#kept[reader.next] : this.#chunk(reader.next);
        if (chunk !== undefined) {
          reader.next++;
          reader.behind -= chunk.data.length;
          const rest = unread(chunk, from);
          if (rest !== null) yield rest;
          this.#trim();
          this.#room.notify();
        } else if (this.#ended) break;
        else await this.#changed.wait(signal);
      }
      if (late) yield { type: "output_truncated" };
    } finally {
      this.#readers.delete(reader);
      this.#trim();
      this.#room.notify();
    }
  }

  #chunk(number: number): Chunk | undefined {
    return this.#kept[number] ?? this.#overflow[number - this.#kept.length - this.#passed];
  }

  #slowestBehind(): number {
    let most = 0;
    for (const { behind } of this.#readers) most = Math.max(most, behind);
    return most;
  }

  #trim(): void {
    if (this.#overflow.length === 0) return;
    let first = Number.POSITIVE_INFINITY;
    for (const { next } of this.#readers) first = Math.min(first, next);
    const passed = Math.min(this.#overflow.length, Math.max(0, first - this.#kept.length - this.#passed));
    if (passed === 0) return;
    this.#overflow = this.#overflow.slice(passed);
    this.#passed += passed;
  }
}

function unread(chunk: Chunk, from: ExecOffsets): Chunk | null {
  const skip = Math.max(0, from[chunk.type] - chunk.offset);
  if (skip >= chunk.data.length) return null;
  return skip === 0 ? chunk : { ...chunk, offset: chunk.offset + skip, data: chunk.data.subarray(skip) };
}

function sizeOf(chunks: readonly Chunk[]): number {
  return chunks.reduce((bytes, { data }) => bytes + data.length, 0);
}
