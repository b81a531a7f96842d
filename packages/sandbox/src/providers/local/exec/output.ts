import { type ExecChunk, type ExecExit, type ExecOffsets, SlipwayError } from "@slipway/contract";
import { abortedError } from "../agent/errors.ts";

/** Output that waits here for its reader. Above this the source is paused, and in the end the command. */
const fullBytes = 1024 * 1024;

/** Where an exec's bytes and its end meet whoever takes them. */
export interface ExecOutput {
  /** How much of each stream came in, from whatever source. */
  readonly offsets: { stdout: number; stderr: number };
  readonly isFull: boolean;
  readonly exit: ExecExit | null;
  push(type: "stdout" | "stderr", data: Buffer): void;
  truncated(): void;
  end(exit: ExecExit): void;
  fail(error: Error): void;
  /** Calls back once, when it is not full any more or the exec's handle is let go. */
  onRoom(callback: () => void): void;
  take(signal?: AbortSignal): AsyncIterable<ExecChunk>;
  wait(signal?: AbortSignal): Promise<ExecExit>;
}

export function createExecOutput(from: ExecOffsets): ExecOutput {
  return new Output(from);
}

interface Waiter<T> {
  resolve(value: T): void;
  reject(error: Error): void;
}

class Output implements ExecOutput {
  readonly offsets: { stdout: number; stderr: number };
  exit: ExecExit | null = null;
  #error: Error | null = null;
  #use: "held" | "taken" | "discarded" = "held";
  #queue: ExecChunk[] = [];
  #queuedBytes = 0;
  #roomCallback: (() => void) | null = null;
  #reader: Waiter<IteratorResult<ExecChunk>> | null = null;
  readonly #waiters = new Set<Waiter<ExecExit>>();

  constructor(from: ExecOffsets) {
    this.offsets = { stdout: from.stdout, stderr: from.stderr };
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
    if (this.#use === "taken") throw new SlipwayError("invalid_request", "the output of an exec can be taken once");
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

/** A promise that the signal rejects; without a signal it costs nothing more. */
function abortable<T>(signal: AbortSignal | undefined, register: (waiter: Waiter<T>) => () => void): Promise<T> {
  if (signal === undefined) return new Promise((resolve, reject) => void register({ resolve, reject }));
  if (signal.aborted) return Promise.reject(abortedError(signal));
  return new Promise((resolve, reject) => {
    const done = () => signal.removeEventListener("abort", onAbort);
    const forget = register({
      resolve(value) {
        done();
        resolve(value);
      },
      reject(error) {
        done();
        reject(error);
      },
    });
    const onAbort = () => {
      forget();
      reject(abortedError(signal));
    };
    signal.addEventListener("abort", onAbort, { once: true });
  });
}
