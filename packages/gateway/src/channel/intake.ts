import type { IncomingMessage } from "node:http";
import { eventsRequestSchema, type NumberedEvent, runChannel, SlipwayError } from "@slipway/contract";
import { readBody } from "@slipway/host";
import type { z } from "zod";
import type { Clock } from "../ports/ports.ts";
import { createRate } from "./rate.ts";
import type { Timers } from "./timers.ts";

/** Reads what one run claims, within its rate limits. */
export interface Intake {
  /** Fails with `event_rejected` or `too_large`. */
  read(request: IncomingMessage): Promise<Claimed>;
  /** For requests without events. Returns 0, or how long to wait. */
  ask(): number;
}

export type Claimed =
  | { readonly events: readonly NumberedEvent[] }
  /** Too much for now: send the same again after this time. */
  | { readonly retryAfterMs: number };

const eventsPerSecond = 2000;
const burstEvents = 8000;
const bytesPerSecond = 8 * 1024 * 1024;
const burstBytes = 32 * 1024 * 1024;
/** The minimum charge per request. */
const leastBytes = 4096;
/** A malformed body costs this multiple of its bytes: rejecting it can be more expensive than taking a good one. */
const garbageFactor = 16;
/** Bodies of one run at a time. Each may use the memory of a whole body. */
const maxReading = 8;
const busyMs = 1000;
const asksPerSecond = 50;
const burstAsks = 200;

export function createIntake(clock: Clock, timers: Timers): Intake {
  const events = createRate(eventsPerSecond, burstEvents, clock);
  const bytes = createRate(bytesPerSecond, burstBytes, clock);
  const asks = createRate(asksPerSecond, burstAsks, clock);
  let reading = 0;
  return {
    ask: () => asks.take(1),
    async read(request) {
      if (reading >= maxReading) return { retryAfterMs: busyMs };
      reading += 1;
      const body = await readRunBody(request, runChannel.maxBodyBytes, timers).finally(() => {
        reading -= 1;
      });
      const waitMs = bytes.take(Math.max(body.length, leastBytes));
      if (waitMs > 0) return { retryAfterMs: waitMs };
      try {
        const claimed = parseBody(eventsRequestSchema, body, "event_rejected");
        const retryAfterMs = events.take(claimed.events.length);
        return retryAfterMs > 0 ? { retryAfterMs } : claimed;
      } catch (error) {
        bytes.charge(body.length * garbageFactor);
        throw error;
      }
    },
  };
}

const shownIssues = 5;
const shownCharacters = 200;

export function readRunBody(request: IncomingMessage, maxBytes: number, { after }: Timers): Promise<Buffer> {
  return readBody(request, { maxBytes, limitMs: 10_000, late: "event_rejected", after });
}

export function parseBody<S extends z.ZodType>(
  schema: S,
  body: Buffer,
  code: "event_rejected" | "invalid_request",
): z.output<S> {
  let value: unknown;
  try {
    value = JSON.parse(body.toString());
  } catch (cause) {
    throw new SlipwayError(code, "the body is not JSON", { cause });
  }
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const issues = result.error.issues.slice(0, shownIssues);
  const text = issues.map(({ path, message }) => `${path.join(".")}: ${message}`.slice(0, shownCharacters));
  throw new SlipwayError(code, text.join("; "));
}
