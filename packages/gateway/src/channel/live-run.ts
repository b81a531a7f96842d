import { type ControlMessage, endAs, type RunId, type RunTask, runChannel } from "@slipway/contract";
import type { Clock, RunLog } from "../ports/ports.ts";
import { type Book, openBook } from "./book.ts";
import { createIntake, type Intake } from "./intake.ts";
import { createPolls } from "./polls.ts";
import type { Timers } from "./timers.ts";
import { watchSilence } from "./watch-silence.ts";

/** A run as the channel holds it while its runner may be alive. */
export interface LiveRun {
  readonly id: RunId;
  readonly task: RunTask;
  readonly book: Book;
  readonly intake: Intake;
  readonly lastSeenAt: number | undefined;
  readonly closed: AbortSignal;
  /** Notes that the runner was heard from. */
  seen(): void;
  hello(instance: string): void;
  poll(after: number, signal: AbortSignal): Promise<readonly ControlMessage[]>;
  close(): void;
}

export interface LiveRunParts {
  readonly log: RunLog;
  readonly clock: Clock;
  readonly timers: Timers;
}

export async function openLiveRun(id: RunId, task: RunTask, { log, clock, timers }: LiveRunParts): Promise<LiveRun> {
  const book = await openBook(log, id);
  const polls = createPolls(book, timers);
  const closing = new AbortController();
  const silence = watchSilence(timers, () => book.fail(endAs("runner_lost", silent)));
  book.ending.promise.then(() => silence.stop());
  let instance: string | undefined;
  let lastSeenAt: number | undefined;
  return {
    id,
    task,
    book,
    intake: createIntake(clock, timers),
    closed: closing.signal,
    get lastSeenAt() {
      return lastSeenAt;
    },
    seen() {
      lastSeenAt = clock.now();
      silence.seen();
    },
    hello(newInstance) {
      book.ending.requireRunning();
      if (instance !== newInstance) polls.release();
      instance = newInstance;
    },
    async poll(after, signal) {
      book.ending.requireRunning();
      const messages = await polls.wait(after, AbortSignal.any([signal, closing.signal]));
      book.ending.requireRunning();
      return messages;
    },
    close() {
      silence.stop();
      closing.abort();
      log.release(id);
    },
  };
}

const silent = `nothing came from the runner for ${(3 * runChannel.heartbeatMs) / 1000} s`;
