import { appendFileSync, mkdirSync } from "node:fs";
import { open } from "node:fs/promises";
import { dirname } from "node:path";

const inMemoryBytes = 256 * 1024;
const pieceBytes = 1024 * 1024;

/** What a command has written, kept in full: a reader starts at any byte. What grows large lies in a file. */
export class Output {
  #bytes = 0;
  #held: Buffer[] = [];
  #spilled = false;
  #ended = false;
  #waiting = new Set<() => void>();
  readonly #file: string;

  constructor(file: string) {
    this.#file = file;
  }

  push(data: Uint8Array): void {
    if (data.length === 0 || this.#ended) return;
    this.#held.push(Buffer.from(data));
    this.#bytes += data.length;
    if (this.#spilled || this.#bytes > inMemoryBytes) this.#spill();
    this.#wake();
  }

  end(): void {
    this.#ended = true;
    this.#wake();
  }

  /** Yields from the offset on, and goes on until the end or the signal. */
  async *read(offset: number, signal: AbortSignal): AsyncGenerator<Buffer> {
    for (let at = offset; ; ) {
      const data = await this.#slice(at);
      at += data.length;
      if (data.length > 0) yield data;
      else if (this.#ended) return;
      else await this.#more(signal);
      if (signal.aborted) return;
    }
  }

  #spill(): void {
    if (!this.#spilled) mkdirSync(dirname(this.#file), { recursive: true });
    this.#spilled = true;
    for (const piece of this.#held.splice(0)) appendFileSync(this.#file, piece, { mode: 0o600 });
  }

  async #slice(from: number): Promise<Buffer> {
    if (from >= this.#bytes) return Buffer.alloc(0);
    if (!this.#spilled) {
      if (this.#held.length > 1) this.#held = [Buffer.concat(this.#held)];
      return (this.#held[0] ?? Buffer.alloc(0)).subarray(from);
    }
    const wanted = Buffer.alloc(Math.min(pieceBytes, this.#bytes - from));
    await using file = await open(this.#file, "r");
    const { bytesRead } = await file.read(wanted, 0, wanted.length, from);
    return wanted.subarray(0, bytesRead);
  }

  async #more(signal: AbortSignal): Promise<void> {
    if (signal.aborted) return;
    await new Promise<void>((resolve) => {
      const wake = () => {
        signal.removeEventListener("abort", wake);
        this.#waiting.delete(wake);
        resolve();
      };
      signal.addEventListener("abort", wake);
      this.#waiting.add(wake);
    });
  }

  #wake(): void {
    for (const wake of [...this.#waiting]) wake();
  }
}
