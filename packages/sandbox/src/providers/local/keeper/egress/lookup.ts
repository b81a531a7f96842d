import { lookup } from "node:dns/promises";

/** All addresses of a name. May reject or answer with none. */
export type Resolve = (name: string) => Promise<readonly string[]>;

export const resolveBySystem: Resolve = async (name) => {
  const found = await lookup(name, { all: true });
  return found.map(({ address }) => address);
};

/**
 * Bounds a resolver: at most `concurrency` lookups at once, so that one sandbox does not take the process's threads, and an
 * empty answer after `timeoutMs` or on any failure.
 */
export function boundedResolve(resolve: Resolve, concurrency: number, timeoutMs: number): Resolve {
  const waiting: (() => void)[] = [];
  let running = 0;

  const acquire = async () => {
    if (running >= concurrency) await new Promise<void>((turn) => waiting.push(turn));
    else running += 1;
  };
  const release = () => {
    const next = waiting.shift();
    if (next) next();
    else running -= 1;
  };
  const start = async (name: string, signal: AbortSignal): Promise<readonly string[]> => {
    await acquire();
    try {
      return signal.aborted ? [] : await resolve(name);
    } catch {
      return [];
    } finally {
      release();
    }
  };
  return async (name) => {
    const expiry = new AbortController();
    const { promise: expired, resolve: expire } = Promise.withResolvers<readonly string[]>();
    const timer = setTimeout(() => {
      expiry.abort();
      expire([]);
    }, timeoutMs).unref();
    try {
      return await Promise.race([start(name, expiry.signal), expired]);
    } finally {
      clearTimeout(timer);
    }
  };
}
