import { invalid, refusal } from "../refuse.ts";

export interface InputSink {
  write(data: Uint8Array): Promise<void>;
  end(): Promise<void>;
}

/** Standard input, written at offsets: a write that is tried again overlaps with what has arrived. */
export class Input {
  #written = 0;
  #closed = false;
  #sink: InputSink;
  /** One write after the other. */
  #last: Promise<void> = Promise.resolve();

  constructor(sink: InputSink) {
    this.#sink = sink;
  }

  get status(): { numBytesWritten: number; closed: boolean } {
    return { numBytesWritten: this.#written, closed: this.#closed };
  }

  async write(offset: number, data: Uint8Array, end: boolean): Promise<void> {
    const written = this.#last.then(() => this.#write(offset, data, end));
    this.#last = written.catch(() => {});
    await written;
  }

  /** The command has ended. */
  close(): void {
    this.#closed = true;
  }

  async #write(offset: number, data: Uint8Array, end: boolean): Promise<void> {
    if (this.#closed) {
      if (offset + data.length > this.#written)
        throw refusal("FAILED_PRECONDITION", "Standard input is closed: the command has ended, or was told the end.");
      return;
    }
    if (data.length > 0) {
      if (offset > this.#written)
        throw invalid(`Offset ${offset} is beyond the ${this.#written} bytes written so far.`);
      const fresh = data.subarray(this.#written - offset);
      if (fresh.length > 0) await this.#sink.write(fresh);
      this.#written += fresh.length;
    }
    if (!end) return;
    this.#closed = true;
    await this.#sink.end();
  }
}
