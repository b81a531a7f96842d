import type { Http2Session } from "node:http2";
import type { Duplex } from "node:stream";
import { setTimeout as delay } from "node:timers/promises";
import { SlipwayError } from "@slipway/contract";
import { abortable, abortedError } from "../abort.ts";

/** A connection that is made again whenever it is lost, until it is disposed of. */
export interface Connection<Session extends Http2Session> extends AsyncDisposable {
  /** The session, now or when there is one again. Fails with `provider_unavailable` after a while without. */
  ready(signal?: AbortSignal, withinMs?: number): Promise<Session>;
  readonly isConnected: boolean;
}

export interface ConnectionOptions<Session extends Http2Session> {
  open(signal: AbortSignal): Promise<Duplex>;
  /** Proves the key, and makes the raw stream a session. */
  start(stream: Duplex): Promise<Session>;
  onState?(state: "connected" | "lost"): void;
  onFailure?(error: unknown): void;
}

/** For everything up to a session. */
const attemptMs = 20_000;
const readyMs = 30_000;
const firstPauseMs = 100;
const longestPauseMs = 5000;
/** A session that lived this long counts as a success. */
const steadyMs = 500;

export function keepConnected<Session extends Http2Session>(options: ConnectionOptions<Session>): Connection<Session> {
  const closing = new AbortController();
  let session: Session | null = null;
  let failure: unknown;
  const waiting = new Set<(session: Session) => void>();

  /** How long the session lived. Fails when there was none. */
  const live = async (): Promise<number> => {
    const made = await attempt(options, closing.signal);
    if (closing.signal.aborted) {
      made.destroy();
      return 0;
    }
    const startedMs = performance.now();
    session = made;
    for (const resolve of waiting) resolve(made);
    waiting.clear();
    options.onState?.("connected");
    if (!made.destroyed) await new Promise<void>((resolve) => made.once("close", () => resolve()));
    session = null;
    options.onState?.("lost");
    return performance.now() - startedMs;
  };
  const run = async () => {
    for (let failures = 0; !closing.signal.aborted; failures++) {
      try {
        if ((await live()) > steadyMs) failures = 0;
        failure = new SlipwayError("provider_unavailable", "The connection to the sandbox was lost.");
      } catch (error) {
        failure = error;
        if (!closing.signal.aborted) options.onFailure?.(error);
      }
      await pause(failures, closing.signal);
    }
  };
  const running = run();
  return {
    get isConnected() {
      return session !== null;
    },
    ready(signal, withinMs = readyMs) {
      if (closing.signal.aborted) return Promise.reject(closed());
      if (session !== null && !session.destroyed && !session.closed) return Promise.resolve(session);
      return abortable<Session>(signal, ({ resolve, reject }) => {
        const forget = () => {
          waiting.delete(take);
          clearTimeout(timer);
          closing.signal.removeEventListener("abort", onClose);
        };
        const take = (made: Session) => {
          forget();
          resolve(made);
        };
        const onClose = () => {
          forget();
          reject(closed());
        };
        const timer = setTimeout(() => {
          forget();
          reject(unreachable(failure));
        }, withinMs);
        waiting.add(take);
        closing.signal.addEventListener("abort", onClose, { once: true });
        return forget;
      });
    },
    async [Symbol.asyncDispose]() {
      closing.abort();
      session?.destroy();
      await running;
    },
  };
}

async function attempt<Session extends Http2Session>(
  { open, start }: ConnectionOptions<Session>,
  closing: AbortSignal,
): Promise<Session> {
  const signal = AbortSignal.any([closing, AbortSignal.timeout(attemptMs)]);
  const stream = await openUnlessAborted(open, signal);
  const cut = () => stream.destroy();
  stream.on("error", cut);
  signal.addEventListener("abort", cut, { once: true });
  try {
    if (signal.aborted) throw abortedError(signal);
    return await start(stream);
  } catch (error) {
    cut();
    throw error;
  } finally {
    signal.removeEventListener("abort", cut);
  }
}

/** Also when what opens does not heed the signal. */
async function openUnlessAborted(open: (signal: AbortSignal) => Promise<Duplex>, signal: AbortSignal): Promise<Duplex> {
  const opening = open(signal);
  return await abortable<Duplex>(signal, ({ resolve, reject }) => {
    opening.then(resolve, reject);
    return () => void opening.then((late) => late.on("error", () => undefined).destroy()).catch(() => undefined);
  });
}

/** Longer with each failure, and never the same for two: a host that comes back has many connections to make. */
async function pause(failures: number, signal: AbortSignal): Promise<void> {
  const longestMs = Math.min(longestPauseMs, firstPauseMs * 2 ** Math.min(failures, 10));
  const ms = longestMs * (0.5 + Math.random() / 2);
  await delay(ms, undefined, { signal, ref: false }).catch(() => undefined);
}

function unreachable(cause: unknown): SlipwayError {
  return new SlipwayError("provider_unavailable", "The sandbox cannot be reached.", { cause });
}

function closed(): SlipwayError {
  return new SlipwayError("aborted", "The link to the sandbox is closed.");
}
