import type { Duplex } from "node:stream";

/** Connections to a host channel that nobody has taken yet. */
export interface ConnectionQueue {
  push(connection: Duplex): void;
  /** Yields each connection once, until the signal or the close. */
  take(signal?: AbortSignal): AsyncIterable<Duplex>;
  /** Cuts every connection, taken or not, and ends every `take`. */
  close(): void;
}

/** Untrusted programs choose how many connections they make: it cuts those past the limit. */
export function createConnectionQueue(mostConnections = 256): ConnectionQueue {
  const open = new Set<Duplex>();
  const waiting = new Set<Duplex>();
  const closing = new AbortController();
  let changed = Promise.withResolvers<void>();
  const notify = () => {
    changed.resolve();
    changed = Promise.withResolvers();
  };
  return {
    push(connection) {
      connection.on("error", () => connection.destroy());
      if (closing.signal.aborted || open.size >= mostConnections) return void connection.destroy();
      open.add(connection);
      waiting.add(connection);
      connection.once("close", () => {
        open.delete(connection);
        waiting.delete(connection);
      });
      notify();
    },
    async *take(signal) {
      const stop = signal === undefined ? closing.signal : AbortSignal.any([signal, closing.signal]);
      stop.addEventListener("abort", notify, { once: true });
      while (!stop.aborted) {
        const [connection] = waiting;
        if (connection === undefined) {
          await changed.promise;
          continue;
        }
        waiting.delete(connection);
        if (!connection.destroyed) yield connection;
      }
    },
    close() {
      closing.abort();
      for (const connection of open) connection.destroy();
    },
  };
}
