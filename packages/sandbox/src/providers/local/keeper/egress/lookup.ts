import { lookup } from "node:dns/promises";
import { abortable } from "../../../../abort.ts";

/** All addresses of a name. May reject or answer with none. */
export type Resolve = (name: string) => Promise<readonly string[]>;

export const resolveBySystem: Resolve = async (name) => {
  const found = await lookup(name, { all: true });
  return found.map(({ address }) => address);
};

/**
 * Bounds a resolver: at most `concurrency` lookups at once, so that one sandbox cannot take all threads of the
 * process, and no addresses after `timeoutMs` or on a failure.
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
  return (name) => {
    const expiry = AbortSignal.timeout(timeoutMs);
    return abortable<readonly string[]>(expiry, ({ resolve: settle }) => {
      void start(name, expiry).then(settle);
      return () => undefined;
    }).catch(() => []);
  };
}
