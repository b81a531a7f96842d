import type { ServerResponse } from "node:http";
import process from "node:process";
import { hasCode, SlipwayError } from "@slipway/contract";
import type { PreparedRequest } from "../admit/prepare.ts";
import type { AgentDialect, Meter } from "../dialects/dialect.ts";
import type { Reservation } from "../pay/budget.ts";
import type { Answer } from "../send/answer.ts";
import { translateStream } from "./translate.ts";

/** A response on its way to the agent. */
export interface Delivery {
  readonly prepared: PreparedRequest;
  /** The dialect of the agent. */
  readonly dialect: AgentDialect;
  readonly response: ServerResponse;
  readonly reservation: Pick<Reservation, "covers" | "extend">;
  readonly meter: Meter;
}

/** Passes a stream on. Returns why it did not reach its end, if it did not. */
export async function passStream(answer: Answer, delivery: Delivery): Promise<SlipwayError | undefined> {
  const { dialect, meter, prepared, response } = delivery;
  const convert = prepared.translated && translateStream(prepared.translated, prepared.dialect, dialect);
  const ended = Promise.withResolvers<SlipwayError | undefined>();
  const holds = createHolds(answer);
  let failure: SlipwayError | undefined;
  const fail = (error: unknown) => {
    failure ??= asSlipwayError(error);
    answer.abort(failure);
  };
  const budget = watchBudget(delivery, holds, fail);
  const write = (piecesOf: () => Iterable<Uint8Array | string>) => {
    try {
      for (const piece of piecesOf()) if (piece.length > 0) response.write(piece);
      if (!response.writableNeedDrain) return;
      holds.add();
      response.once("drain", holds.release);
    } catch (error) {
      fail(error);
    }
  };
  answer.pipe({
    data(chunk) {
      if (failure !== undefined) return;
      write(() => (convert === undefined ? [chunk] : convert.push(chunk)));
      // Node flushes writes at the end of this turn: the chunk leaves before it is counted.
      process.nextTick(budget.count, chunk);
    },
    end: ended.resolve,
  });
  const broken = await ended.promise;
  await new Promise<void>((counted) => process.nextTick(counted));
  await budget.extended();
  if (meter.complete && convert?.over === false) fail(new Error("the answer has ended but its translation has not"));
  return failure ?? (meter.complete ? undefined : broken);
}

/** Counts the chunks, and pauses the stream while it reserves more. */
function watchBudget({ meter, reservation }: Delivery, holds: Holds, fail: (error: unknown) => void) {
  let extending: Promise<void> | undefined;
  const extend = async () => {
    holds.add();
    try {
      await reservation.extend(meter.estimatedOutputTokens);
    } catch (error) {
      // The whole answer is here and paid for: deliver it.
      if (!meter.complete || !hasCode(error, "budget_exhausted")) fail(error);
    }
    extending = undefined;
    holds.release();
  };
  return {
    count(chunk: Uint8Array) {
      meter.push(chunk);
      if (extending === undefined && !reservation.covers(meter.estimatedOutputTokens)) extending = extend();
    },
    extended: async () => extending,
  };
}

interface Holds {
  add(): void;
  release(): void;
}

/** Pauses the answer while anything holds it. */
function createHolds(answer: Answer): Holds {
  let count = 0;
  return {
    add() {
      if (count++ === 0) answer.pause();
    },
    release() {
      if (--count === 0) answer.resume();
    },
  };
}

/** Hides the message of a defect. */
export function asSlipwayError(error: unknown): SlipwayError {
  if (error instanceof SlipwayError) return error;
  return new SlipwayError("internal", "the gateway failed", { cause: error });
}
