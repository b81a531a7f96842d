import type { IncomingMessage, ServerResponse } from "node:http";
import {
  type Control,
  createLane,
  hasCode,
  type NumberedEvent,
  type RunEnd,
  type RunEndReason,
  type RunId,
  type RunTask,
  SlipwayError,
} from "@slipway/contract";
import type { Clock, RunLog } from "../ports/ports.ts";
import { answerError } from "./answer.ts";
import { keptEnd } from "./book.ts";
import { type LiveRun, openLiveRun } from "./live-run.ts";
import { serve } from "./serve.ts";
import { systemTimers, type Timers } from "./timers.ts";

/** The host's end of the run channel. docs/run-channel.md tells what is said on it. */
export interface RunChannel {
  /** From now on the run is heard, watched for silence and can be told things. What is kept of it from before is known. */
  open(run: { readonly id: RunId; readonly task: RunTask }): Promise<void>;
  /** Serves a request below `/run/` of a run that the caller has identified. Fails by a defect only, after it has answered. */
  handle(run: RunId, request: IncomingMessage, response: ServerResponse): Promise<void>;
  /** What was reported after that number, then what comes, until the run has ended, is closed, or the signal aborts. */
  events(
    run: RunId,
    options?: { readonly after?: number; readonly signal?: AbortSignal },
  ): AsyncIterable<NumberedEvent>;
  /** Tells the runner something; answers when it is kept. Fails with `run_ended`. */
  send(run: RunId, control: Control): Promise<void>;
  ended(run: RunId): Promise<RunEnd>;
  /** Ends the run by the host's will, unless it has ended. */
  fail(run: RunId, reason: RunEndReason, message: string): Promise<void>;
  /** When something last came from the runner; undefined when nothing has since the run was opened. */
  lastSeen(run: RunId): number | undefined;
  /** Lets go of a run: it is no longer heard nor watched. What is kept of it stays. */
  close(run: RunId): void;
}

export interface RunChannelParts {
  readonly log: RunLog;
  readonly clock: Clock;
  readonly timers?: Timers;
}

const maxMessageCharacters = 4096;

export function createRunChannel({ log, clock, timers = systemTimers }: RunChannelParts): RunChannel {
  const runs = new Map<RunId, LiveRun>();
  const inTurn = createLane();
  const opened = (id: RunId): LiveRun => {
    const run = runs.get(id);
    if (run === undefined) throw new SlipwayError("provider_unavailable", `${id} is not open`);
    return run;
  };
  return {
    open: ({ id, task }) =>
      inTurn(async () => {
        if (!runs.has(id)) runs.set(id, await openLiveRun(id, task, { log, clock, timers }));
      }),
    async handle(id, request, response) {
      const run = runs.get(id);
      try {
        if (run === undefined) await refuseUnopened(log, id);
        else await serve(run, request, response, timers);
      } catch (error) {
        await answerFailure(response, error, run);
      }
    },
    events(id, { after = 0, signal } = {}) {
      const { book, closed } = opened(id);
      return book.follow(after, AbortSignal.any([closed, ...(signal === undefined ? [] : [signal])]));
    },
    send: async (id, control) => opened(id).book.send(control),
    ended: async (id) => opened(id).book.ending.promise,
    fail: async (id, reason, message) =>
      opened(id).book.fail({ reason, message: message.slice(0, maxMessageCharacters) }),
    lastSeen: (id) => opened(id).lastSeenAt,
    close(id) {
      runs.get(id)?.close();
      runs.delete(id);
    },
  };
}

/** A run that the host has not opened again since it was restarted is asked to wait; one that is over is told so. */
async function refuseUnopened(log: RunLog, id: RunId): Promise<never> {
  const end = await keptEnd(log, id);
  log.release(id);
  if (end === undefined) throw new SlipwayError("provider_unavailable", "the run is not open yet");
  throw new SlipwayError("run_ended", `the run has ended: ${end.reason}`);
}

async function answerFailure(response: ServerResponse, error: unknown, run: LiveRun | undefined): Promise<void> {
  if (!(error instanceof SlipwayError)) {
    // What the host can not take now the runner keeps, and sends again.
    answerError(response, new SlipwayError("provider_unavailable", "the host could not take the request"));
    throw error;
  }
  const tellsNext = hasCode(error, "event_rejected") || hasCode(error, "run_ended");
  answerError(response, error, tellsNext ? await run?.book.next() : undefined);
}
