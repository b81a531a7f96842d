import type { IncomingMessage, ServerResponse } from "node:http";
import {
  type Control,
  createLane,
  type End,
  type EndReason,
  endAs,
  hasCode,
  type NumberedEvent,
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

/** The host's end of the run channel. See docs/run-channel.md for the protocol. */
export interface RunChannel {
  /** Starts to listen to the run and to watch it for silence. Continues from what was stored before. */
  open(run: { readonly id: RunId; readonly task: RunTask }): Promise<void>;
  /** Serves a request below `/run/` of an identified run. Throws only for a defect, after it has answered. */
  handle(run: RunId, request: IncomingMessage, response: ServerResponse): Promise<void>;
  /** Yields events after that number, then new ones, until the run has ended, is closed, or the signal aborts. */
  events(
    run: RunId,
    options?: { readonly after?: number; readonly signal?: AbortSignal },
  ): AsyncIterable<NumberedEvent>;
  /** Sends a message to the runner. Resolves when it is stored. Fails with `run_ended`. */
  send(run: RunId, control: Control): Promise<void>;
  ended(run: RunId): Promise<End>;
  /** Ends the run on behalf of the host, unless it has ended. */
  fail(run: RunId, reason: EndReason, message: string): Promise<void>;
  /** When the runner was last heard from. Undefined if not since the run was opened. */
  lastSeen(run: RunId): number | undefined;
  /** Stops listening to the run and watching it. Keeps its records. */
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
    fail: async (id, reason, message) => opened(id).book.fail(endAs(reason, message.slice(0, maxMessageCharacters))),
    lastSeen: (id) => opened(id).lastSeenAt,
    close(id) {
      runs.get(id)?.close();
      runs.delete(id);
    },
  };
}

/** Asks a run to wait if it has not been opened since the host restarted. Tells an ended run so. */
async function refuseUnopened(log: RunLog, id: RunId): Promise<never> {
  const end = await keptEnd(log, id);
  log.release(id);
  if (end === undefined) throw new SlipwayError("provider_unavailable", "the run is not open yet");
  throw new SlipwayError("run_ended", `the run has ended: ${end.reason}`);
}

async function answerFailure(response: ServerResponse, error: unknown, run: LiveRun | undefined): Promise<void> {
  if (!(error instanceof SlipwayError)) {
    // The runner keeps what the host cannot take now, and sends it again.
    answerError(response, new SlipwayError("provider_unavailable", "the host cannot take the request now"));
    throw error;
  }
  const tellsNext = hasCode(error, "event_rejected") || hasCode(error, "run_ended");
  answerError(response, error, tellsNext ? await run?.book.next() : undefined);
}
