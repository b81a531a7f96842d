import { type ExecChunk, type ExecExit, type ExecOffsets, SlipwayError } from "@slipway/contract";
import { abortable, abortedError, type Waiter } from "../../abort.ts";

/** When more output than this waits for its reader, the source pauses, and in the end the command. */
const fullBytes = 1024 * 1024;

/** Connects the source of an exec's bytes and exit to whoever reads them. */
export class ExecOutput {
  /** How many bytes of each stream have come in, from whatever source. */
  readonly offsets: { stdout: number; stderr: number };
  exit: ExecExit | null = null;
  #error: Error | null = null;
  #use: "held" | "taken" | "discarded" = "held";
  #queue: ExecChunk[] = [];
  #queuedBytes = 0;
  #roomCallback: (() => void) | null = null;
  #reader: Waiter<IteratorResult<ExecChunk>> | null = null;
  readonly #waiters = new Set<Waiter<ExecExit>>();

  constructor({ stdout, stderr }: ExecOffsets) {
    this.offsets = { stdout, stderr };
  }

  get isFull(): boolean {
    return this.#queuedBytes >= fullBytes;
  }

  push(type: "stdout" | "stderr", data: Buffer): void {
    const offset = this.offsets[type];
    this.offsets[type] = offset + data.length;
    this.#add({ type, offset, data }, data.length);
  }

  truncated(): void {
    this.#add({ type: "output_truncated" }, 0);
  }

  end(exit: ExecExit): void {
    if (this.exit !== null || this.#error !== null) return;
    this.exit = exit;
    for (const waiter of this.#waiters) waiter.resolve(exit);
    this.#waiters.clear();
    this.#finishReader();
  }

  fail(error: Error): void {
    if (this.exit !== null || this.#error !== null) return;
    this.#error = error;
    for (const waiter of this.#waiters) waiter.reject(error);
    this.#waiters.clear();
    this.#finishReader();
    this.#callRoom();
  }

  /** Calls back once: when there is room, or when the exec's handle is disposed of. */
  onRoom(callback: () => void): void {
    this.#roomCallback = callback;
    if (!this.isFull) this.#callRoom();
  }

  wait(signal?: AbortSignal): Promise<ExecExit> {
    if (this.#use === "held") this.#discard();
    if (this.exit !== null) return Promise.resolve(this.exit);
    if (this.#error !== null) return Promise.reject(this.#error);
    return abortable(signal, (waiter) => {
      this.#waiters.add(waiter);
      return () => this.#waiters.delete(waiter);
    });
  }

  take(signal?: AbortSignal): AsyncIterable<ExecChunk> {
    if (this.#use === "taken")
      throw new SlipwayError("invalid_request", "The output of an exec can be read only once.");
    if (this.#use === "held") this.#use = "taken";
    const iterator: AsyncIterator<ExecChunk> = {
      next: () => this.#next(signal),
      return: () => {
        this.#discard();
        return Promise.resolve({ done: true, value: undefined });
      },
    };
    return { [Symbol.asyncIterator]: () => iterator };
  }

  #next(signal: AbortSignal | undefined): Promise<IteratorResult<ExecChunk>> {
    if (signal?.aborted) {
      this.#discard();
      return Promise.reject(abortedError(signal));
    }
    const chunk = this.#queue.shift();
    if (chunk !== undefined) {
      if (chunk.type !== "output_truncated") this.#queuedBytes -= chunk.data.length;
      if (!this.isFull) this.#callRoom();
      return Promise.resolve({ done: false, value: chunk });
    }
    if (this.#error !== null) return Promise.reject(this.#error);
    if (this.exit !== null) return Promise.resolve({ done: true, value: undefined });
    return abortable(signal, (waiter) => {
      this.#reader = waiter;
      return () => {
        this.#reader = null;
        this.#discard();
      };
    });
  }

  #add(chunk: ExecChunk, bytes: number): void {
    if (this.#use === "discarded") return;
    if (this.#reader !== null) {
      const reader = this.#reader;
      this.#reader = null;
      reader.resolve({ done: false, value: chunk });
      return;
    }
    this.#queue.push(chunk);
    this.#queuedBytes += bytes;
  }

  #discard(): void {
    this.#use = "discarded";
    this.#queue = [];
    this.#queuedBytes = 0;
    this.#callRoom();
  }

  #callRoom(): void {
    const callback = this.#roomCallback;
    this.#roomCallback = null;
    callback?.();
  }

  #finishReader(): void {
    const reader = this.#reader;
    this.#reader = null;
    if (this.#error !== null) reader?.reject(this.#error);
    else reader?.resolve({ done: true, value: undefined });
  }
}
