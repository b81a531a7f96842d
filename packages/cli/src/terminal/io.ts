import process from "node:process";
import type { Readable, Writable } from "node:stream";
import type { Environment } from "./environment.ts";

/** All that the program touches of its surroundings, so that a test can run it inside itself. */
export interface Io {
  readonly stdin: InputStream;
  readonly stdout: OutputStream;
  readonly stderr: OutputStream;
  readonly env: Environment;
  /** Answers with a function that takes the listener away again. */
  onSignal(name: NodeJS.Signals, listener: () => void): () => void;
}

export type InputStream = Readable & { isTTY?: boolean; setRawMode?(raw: boolean): unknown };
export type OutputStream = Writable & { isTTY?: boolean; columns?: number; rows?: number };

export function processIo(env: Environment): Io {
  return {
    stdin: process.stdin,
    stdout: process.stdout,
    stderr: process.stderr,
    env,
    onSignal(name, listener) {
      process.on(name, listener);
      return () => process.off(name, listener);
    },
  };
}

/** The reader of our output went away. Ends the program without a word. */
export class BrokenPipe extends Error {
  constructor() {
    super("the reader of the output is gone");
    this.name = "BrokenPipe";
  }
}

/** A stream that is written with back-pressure, and that can break without an unhandled error. */
export interface Output {
  readonly isTerminal: boolean;
  write(data: string | Uint8Array): Promise<void>;
  size(): { cols: number; rows: number };
  onResize(listener: () => void): () => void;
}

export function openOutput(stream: OutputStream): Output {
  let failure: Error | undefined;
  stream.on("error", (error: NodeJS.ErrnoException) => {
    failure = error.code === "EPIPE" || error.code === "ERR_STREAM_DESTROYED" ? new BrokenPipe() : error;
  });
  return {
    isTerminal: stream.isTTY === true,
    async write(data) {
      if (failure) throw failure;
      if (data.length === 0) return;
      await new Promise<void>((resolve, reject) => {
        // The callback comes when the bytes are with the system: a slow reader slows whoever writes here.
        stream.write(data, (error) => {
          if (!error) return resolve();
          const { code } = error as NodeJS.ErrnoException;
          reject(code === "EPIPE" || code === "ERR_STREAM_DESTROYED" ? new BrokenPipe() : error);
        });
      });
    },
    size: () => ({ cols: stream.columns || 80, rows: stream.rows || 24 }),
    onResize(listener) {
      stream.on("resize", listener);
      return () => stream.off("resize", listener);
    },
  };
}
