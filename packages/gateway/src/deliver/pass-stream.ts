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
  /** What the agent speaks. */
  readonly dialect: AgentDialect;
  readonly response: ServerResponse;
  readonly reservation: Pick<Reservation, "covers" | "extend">;
  readonly meter: Meter;
}

/** Hands a stream on. Answers why it did not come to its end, if so. */
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
      // Node sends what was written at the end of this turn: it leaves before it is counted.
      process.nextTick(budget.count, chunk);
    },
    end: ended.resolve,
  });
  const broken = await ended.promise;
  await new Promise<void>((counted) => process.nextTick(counted));
  await budget.extended();
  if (meter.complete && convert?.over === false) fail(new Error("the answer has an end, and its translation has none"));
  return failure ?? (meter.complete ? undefined : broken);
}

/** Counts what passes, and holds the stream while more of it is being reserved. */
function watchBudget({ meter, reservation }: Delivery, holds: Holds, fail: (error: unknown) => void) {
  let extending: Promise<void> | undefined;
  const extend = async () => {
    holds.add();
    try {
      await reservation.extend(meter.estimatedOutputTokens);
    } catch (error) {
      // What has all come is delivered, and the money is spent.
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

/** The answer stands still while anything holds it. */
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

/** A defect is told as one, without its words. */
export function asSlipwayError(error: unknown): SlipwayError {
  if (error instanceof SlipwayError) return error;
  return new SlipwayError("internal", "the gateway failed", { cause: error });
}
