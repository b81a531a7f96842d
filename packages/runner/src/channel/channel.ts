import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import {
  type ControlMessage,
  type HelloResponse,
  helloResponseSchema,
  type RunnerEvent,
  runChannel,
} from "@slipway/contract";
import { ask } from "./ask.ts";
import { type Backoff, createBackoff } from "./backoff.ts";
import { pollControls } from "./controls.ts";
import { createEmitter } from "./emitter.ts";
import { createSender } from "./sender.ts";
import { openSpool } from "./spool.ts";
import type { Transport } from "./transport.ts";

/** The runner's end of the run channel. It stores events while the host is away, and sends them later. */
export interface Channel extends AsyncDisposable {
  /** Aborts when the host rejects the run for good: `run_ended`, `run_token_invalid`, `event_rejected`. */
  readonly signal: AbortSignal;
  /** Waits for the host as long as it takes. Call it before emitting anything. */
  hello(): Promise<HelloResponse>;
  /**
   * Numbers an event and resolves when it is on disk. For text it resolves at once and holds the text for a moment, to
   * join it with what follows. Cuts what is too long; fails with `event_rejected` for an invalid event.
   */
  emit(event: RunnerEvent): Promise<void>;
  /** Resolves when the host has everything emitted before. Fails when the host rejects the run. */
  flush(): Promise<void>;
  /** How often the host was away, or not ready for the run. */
  absences(): number;
  /** Resolves when the host is there. */
  reach(): Promise<void>;
  /**
   * Yields each message of the host once, even over restarts, or the messages after a number that the caller remembers.
   * Ends by its signal. Fails when the host rejects the run.
   */
  controls(signal: AbortSignal, after?: number): AsyncIterable<ControlMessage>;
}

export interface ChannelOptions {
  /** Closed with the channel. */
  readonly transport: Transport;
  /** Holds what must survive a restart. */
  readonly directory: string;
  /** Differs for each start of the runner. */
  readonly instance: string;
  readonly backoff?: () => Backoff;
}

const joinTextMs = 50;

export async function openChannel(options: ChannelOptions): Promise<Channel> {
  const { transport, directory, instance, backoff = createBackoff } = options;
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const spool = await openSpool(join(directory, "events.jsonl"));
  const closing = new AbortController();
  const { signal } = closing;
  let absences = 0;
  const line = { transport: watched(transport, () => absences++), backoff };
  const sender = createSender(line, spool, closing);
  const emitter = createEmitter(spool, joinTextMs, sender.wake);
  const greet = async () => {
    const body = JSON.stringify({ version: runChannel.version, instance });
    const answer = await ask(line, { method: "POST", path: "/run/hello", body }, helloResponseSchema, signal);
    if ("error" in answer) throw answer.error;
    return answer.body;
  };
  return {
    signal,
    async hello() {
      const answer = await greet();
      await sender.start(answer.next);
      return answer;
    },
    async emit(event) {
      signal.throwIfAborted();
      await emitter.emit(event);
    },
    async flush() {
      await emitter.settle();
      await sender.flushed();
    },
    absences: () => absences,
    reach: async () => void (await greet()),
    async *controls(stop, after) {
      try {
        yield* pollControls(line, join(directory, "control-sequence"), AbortSignal.any([stop, signal]), after);
      } catch (error) {
        if (stop.aborted) return;
        // The host may have taken the last events at the same moment.
        await sender.flushed().catch(() => undefined);
        closing.abort(error);
        throw signal.reason;
      }
    },
    async [Symbol.asyncDispose]() {
      await emitter.settle().catch(() => undefined);
      closing.abort(new Error("the channel is closed"));
      await sender.stopped;
      transport.close();
      await spool.close();
    },
  };
}

/** Wraps a transport to report each request that no host answered. */
function watched({ call, close }: Transport, onAbsence: () => void): Transport {
  return {
    async call(request, signal) {
      try {
        const answer = await call(request, signal);
        if (answer.status === 503) onAbsence();
        return answer;
      } catch (error) {
        if (!signal.aborted) onAbsence();
        throw error;
      }
    },
    close,
  };
}
