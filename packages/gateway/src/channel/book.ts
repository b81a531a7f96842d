import {
  type Control,
  type ControlMessage,
  controlMessageSchema,
  createLane,
  type End,
  endAs,
  type NumberedEvent,
  type RunId,
  runChannel,
  SlipwayError,
} from "@slipway/contract";
import type { RunLog } from "../ports/ports.ts";
import { type Bell, createBell } from "./bell.ts";
import { sortBatch } from "./decide.ts";
import { createEnding, type Ending } from "./ending.ts";

/** The record of one run: what it claims, what it was told, how it ended. Changes happen one after another. */
export interface Book {
  readonly messages: readonly ControlMessage[];
  readonly ending: Ending;
  /** Rings on an event, a message or the end. */
  readonly changes: Bell;
  next(): Promise<number>;
  /** Takes claimed events and returns the next number. Fails with `event_rejected` or `run_ended`. */
  take(claimed: readonly NumberedEvent[]): Promise<number>;
  send(control: Control): Promise<void>;
  /** Does nothing if the run has ended. */
  fail(end: End): Promise<void>;
  /** Yields stored events after that number, then new ones, until the end or the signal. */
  follow(after: number, signal: AbortSignal): AsyncIterable<NumberedEvent>;
}

export async function openBook(log: RunLog, run: RunId): Promise<Book> {
  const messages = [...(await log.orders(run)).messages];
  const pages: Pages = { log, run, messages, ending: createEnding(), changes: createBell() };
  const end = await keptEnd(log, run);
  if (end !== undefined) pages.ending.reach(end);
  const inTurn = createLane();
  return {
    messages,
    ending: pages.ending,
    changes: pages.changes,
    next: () => log.next(run),
    take: (claimed) => inTurn(() => takeEvents(pages, claimed)),
    send: (control) => inTurn(() => keepControl(pages, control)),
    fail: (end) => inTurn(() => endRun(pages, end)),
    follow: (after, signal) => followEvents(pages, after, signal),
  };
}

/** Reads from the log how a run ended. An end that the runner reported is the last event. */
export async function keptEnd(log: RunLog, run: RunId): Promise<End | undefined> {
  const { end } = await log.orders(run);
  if (end !== undefined) return end;
  const next = await log.next(run);
  for await (const { event } of log.read(run, Math.max(0, next - 2))) {
    if (event.type === "ended") return endAs(event.end.reason, event.end.message);
  }
  return undefined;
}

interface Pages {
  readonly log: RunLog;
  readonly run: RunId;
  readonly messages: ControlMessage[];
  readonly ending: Ending;
  readonly changes: Bell;
}

const tampered = endAs("tampered", "an event's number came again with different content");
const flooded = endAs("flooded", "the run sent more events than a run may send");

async function takeEvents(pages: Pages, claimed: readonly NumberedEvent[]): Promise<number> {
  const { log, run, ending, changes } = pages;
  ending.requireRunning();
  const next = await log.next(run);
  const batch = sortBatch(claimed, next);
  if (batch === undefined) throw new SlipwayError("event_rejected", `the next event is number ${next}`);
  if (!(await log.holds(run, batch.known))) await endRun(pages, tampered);
  else if (await floods(pages, next, batch.fresh)) await endRun(pages, flooded);
  ending.requireRunning();
  if (batch.fresh.length > 0) await log.append(run, batch.fresh);
  const last = batch.fresh.at(-1)?.event;
  if (last?.type === "ended") ending.reach(endAs(last.end.reason, last.end.message));
  changes.ring();
  if (batch.late.length > 0) ending.requireRunning();
  return next + batch.fresh.length;
}

/** The last number is reserved for the run's end. */
async function floods({ log, run }: Pages, next: number, fresh: readonly NumberedEvent[]): Promise<boolean> {
  const isFull = next + fresh.length > runChannel.maxEventsPerRun && fresh.at(-1)?.event.type !== "ended";
  const bytes = fresh.reduce((sum, event) => sum + Buffer.byteLength(JSON.stringify(event)), await log.bytes(run));
  return isFull || bytes > runChannel.maxRunBytes;
}

const maxControls = 10_000;

async function keepControl({ log, run, messages, ending, changes }: Pages, control: Control): Promise<void> {
  ending.requireRunning();
  const sequence = messages.length + 1;
  if (sequence > maxControls) throw new SlipwayError("too_large", `a run takes at most ${maxControls} messages`);
  const message = controlMessageSchema.safeParse({ ...control, sequence });
  if (!message.success) {
    throw new SlipwayError("invalid_request", message.error.issues.map((issue) => issue.message).join("; "));
  }
  await log.order(run, { type: "control", message: message.data });
  messages.push(message.data);
  changes.ring();
}

async function endRun({ log, run, ending, changes }: Pages, end: End): Promise<void> {
  if (ending.reached !== undefined) return;
  await log.order(run, { type: "end", end });
  ending.reach(end);
  changes.ring();
}

async function* followEvents({ log, run, ending, changes }: Pages, after: number, signal: AbortSignal) {
  for (let at = after; ; ) {
    const changed = changes.next(signal);
    const isLast = ending.reached !== undefined;
    for await (const event of log.read(run, at)) {
      if (signal.aborted) return;
      yield event;
      at = event.sequence;
    }
    if (isLast || signal.aborted) return;
    await changed;
  }
}
