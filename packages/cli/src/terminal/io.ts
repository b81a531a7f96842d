import process from "node:process";
import type { Readable, Writable } from "node:stream";
import type { Environment } from "./environment.ts";

/** The program's streams, environment and signals, so that a test can run it in its own process. */
export interface Io {
  readonly stdin: InputStream;
  readonly stdout: OutputStream;
  readonly stderr: OutputStream;
  readonly env: Environment;
  /** Returns a function that removes the listener. */
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

/** The reader of our output is gone. Ends the program silently. */
export class BrokenPipe extends Error {
  constructor() {
    super("the reader of the output is gone");
    this.name = "BrokenPipe";
  }
}

/** Writes with back-pressure; a broken stream causes no unhandled error. */
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
        // The callback runs once the system has the bytes, so a slow reader slows the writer.
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
