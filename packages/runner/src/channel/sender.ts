import { eventsResponseSchema, hasCode, numberedEventSchema, SlipwayError } from "@slipway/contract";
import { ask, type Line, type Refusal } from "./ask.ts";
import type { Spool } from "./spool.ts";

/** Sends the spooled events to the host, once and in order. */
export interface Sender {
  /** Starts to send with the first event that the host does not have. */
  start(next: number): Promise<void>;
  /** Signals that there may be more to send. */
  wake(): void;
  /** Resolves when the host has everything spooled so far. Fails when the host rejects the run. */
  flushed(): Promise<void>;
  /** Resolves when sending has stopped. */
  readonly stopped: Promise<void>;
}

/** Aborts the controller with the error when the host refuses for good. */
export function createSender(line: Line, spool: Spool, closing: AbortController): Sender {
  const { signal } = closing;
  let position = spool.first;
  let work = Promise.resolve();
  let isStarted = false;
  let wake = () => {};
  const waiting = new Set<() => void>();
  const moveTo = (next: number) => {
    position = next;
    for (const check of [...waiting]) check();
  };
  const send = async () => {
    while (!signal.aborted) {
      if (position < spool.next) moveTo(await sendBatch(line, spool, position, signal, moveTo));
      else await new Promise<void>((resolve) => (wake = resolve));
    }
  };
  signal.addEventListener("abort", () => wake());
  return {
    async start(next) {
      if (next > spool.next) await spool.restart(next);
      if (next < spool.first) throw gone(next);
      position = next;
      if (!isStarted) work = send().catch((error: unknown) => closing.abort(error));
      isStarted = true;
    },
    wake: () => wake(),
    flushed() {
      const target = spool.next;
      return new Promise<void>((resolve, reject) => {
        const check = () => {
          if (position < target && !signal.aborted) return;
          waiting.delete(check);
          signal.removeEventListener("abort", check);
          if (position >= target) resolve();
          else reject(signal.reason);
        };
        waiting.add(check);
        signal.addEventListener("abort", check);
        check();
      });
    },
    get stopped() {
      return work;
    },
  };
}

/** Returns the next position. */
async function sendBatch(
  line: Line,
  spool: Spool,
  position: number,
  signal: AbortSignal,
  moveTo: (next: number) => void,
): Promise<number> {
  const events = await spool.read(position);
  const body = `{"events":[${events.join(",")}]}`;
  const answer = await ask(line, { method: "POST", path: "/run/events", body }, eventsResponseSchema, signal);
  const end = position + events.length;
  // If the host has more than was sent, someone else sent it. The next events reveal that to the host.
  if ("body" in answer) return Math.min(answer.body.next, end);
  if (isGap(answer, position)) {
    if (answer.next < spool.first) throw gone(answer.next);
    return answer.next;
  }
  if (answer.next === end && isRunEnd(events.at(-1))) moveTo(end);
  throw answer.error;
}

/** The host asks for earlier events: it has lost some. */
function isGap(refusal: Refusal, position: number): refusal is Refusal & { readonly next: number } {
  return hasCode(refusal.error, "event_rejected") && refusal.next !== undefined && refusal.next < position;
}

/** The host refuses everything after the end: such a refusal shows that it has the end. */
function isRunEnd(line: string | undefined): boolean {
  return line !== undefined && numberedEventSchema.parse(JSON.parse(line)).event.type === "ended";
}

function gone(next: number): SlipwayError {
  return new SlipwayError("event_rejected", `the host asks for event ${next}, which the spool no longer has`);
}
