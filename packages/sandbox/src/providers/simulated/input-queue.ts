import { SlipwayError } from "@slipway/contract";
import { Notifier } from "./notifier.ts";

const mostBytes = 1024 * 1024;

/** A command's standard input: bounded, in order, read once. */
export class InputQueue {
  readonly #open: boolean;
  readonly #chunks: Uint8Array[] = [];
  #bytes = 0;
  #ended: boolean;
  #closed = false;
  readonly #changed = new Notifier();

  constructor(open: boolean) {
    this.#open = open;
    this.#ended = !open;
  }

  /** Resolves when the bytes are within bounds. */
  async write(data: Uint8Array | string, signal: AbortSignal | undefined): Promise<void> {
    this.#refuse();
    const bytes = Buffer.from(data as string);
    this.#chunks.push(bytes);
    this.#bytes += bytes.length;
    this.#changed.notify();
    while (this.#bytes > mostBytes && !this.#closed) await this.#changed.wait(signal);
  }

  end(): void {
    if (this.#ended && this.#open && !this.#closed) return;
    this.#refuse();
    this.#ended = true;
    this.#changed.notify();
  }

  /** The command is gone: nothing is read any more. */
  close(): void {
    this.#closed = true;
    this.#chunks.length = 0;
    this.#changed.notify();
  }

  async *read(signal: AbortSignal): AsyncGenerator<Uint8Array> {
    for (;;) {
      const chunk = this.#chunks.shift();
      if (chunk !== undefined) {
        this.#bytes -= chunk.length;
        this.#changed.notify();
        yield chunk;
      } else if (this.#ended) return;
      else await this.#changed.wait(signal);
    }
  }

  #refuse(): void {
    if (this.#closed) throw new SlipwayError("exec_ended", "The command has ended.");
    if (!this.#open) throw new SlipwayError("invalid_request", "The command's standard input was not kept open.");
    if (this.#ended) throw new SlipwayError("invalid_request", "The command's standard input has been ended.");
  }
}
