import type { ServerResponse } from "node:http";
import { SlipwayError } from "@slipway/contract";
import { type Answer, collect } from "./answer.ts";
import type { Reservation } from "./budget.ts";
import type { Dialect, Meter } from "./dialects/dialect.ts";
import type { PreparedRequest } from "./prepare.ts";
import { refusal } from "./retry.ts";
import { translateStream, translateWhole } from "./translate.ts";

/** A response on its way to the agent. */
export interface Delivery {
  readonly prepared: PreparedRequest;
  /** What the agent speaks. */
  readonly dialect: Dialect;
  readonly response: ServerResponse;
  readonly reservation: Reservation;
  readonly meter: Meter;
}

/** How the endpoint's answer ended, and what is left to tell the agent once it is settled. */
export interface Delivered {
  readonly error: SlipwayError | undefined;
  close(): void;
}

const maxAnswerBytes = 32 * 1024 * 1024;
/** A reader that does not take the last words is left. */
const lastWordsMs = 1000;

/** Passes chunks on as they come, at the speed of the slower side, and no further than the budget goes. */
export async function deliverStream(answer: Answer, delivery: Delivery): Promise<Delivered> {
  if (!answer.contentType.startsWith("text/event-stream")) {
    await collect(answer, maxAnswerBytes);
    throw new SlipwayError(
      "invalid_answer",
      `the endpoint answered ${answer.contentType || "no type"} to a streamed request`,
    );
  }
  delivery.response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-cache" });
  const broken = await passStream(answer, delivery);
  const { dialect, meter, prepared, response } = delivery;
  if (broken === undefined && meter.complete) return { error: undefined, close: () => response.end() };
  const { failure } = meter;
  if (broken === undefined && failure !== undefined) {
    const error = refusal(prepared.route.endpoint.provider, failure.status, failure.message);
    return { error, close: () => response.end() };
  }
  const error = broken ?? new SlipwayError("stream_truncated", "the endpoint ended its answer before the end");
  return { error, close: () => breakOff(response, dialect.writeStreamError(error)) };
}

/** A whole answer, sent when all of it is there. */
export async function deliverWhole(answer: Answer, delivery: Delivery): Promise<Delivered> {
  const body = await collect(answer, maxAnswerBytes);
  const { dialect, meter, prepared, response } = delivery;
  meter.push(body);
  const json = parseAnswer(body);
  if (!meter.complete) throw new SlipwayError("invalid_answer", "the endpoint's answer has no end");
  const text =
    prepared.translated === undefined ? body : translateWhole(prepared.translated, prepared.dialect, dialect, json);
  return {
    error: undefined,
    close() {
      response.writeHead(200, { "content-type": "application/json" });
      response.end(text);
    },
  };
}

/** Answers why the stream did not come to its end, if so. */
async function passStream(answer: Answer, delivery: Delivery): Promise<SlipwayError | undefined> {
  const { dialect, meter, prepared, reservation, response } = delivery;
  const convert = prepared.translated && translateStream(prepared.translated, prepared.dialect, dialect);
  const { promise: ended, resolve: end } = Promise.withResolvers<SlipwayError | undefined>();
  const holds = createHolds(answer);
  let failure: SlipwayError | undefined;
  let extending: Promise<void> | undefined;
  const fail = (error: unknown) => {
    failure ??= asSlipwayError(error);
    answer.abort(failure);
  };
  const extend = async () => {
    holds.add();
    try {
      await reservation.extend(meter.estimatedOutputTokens);
    } catch (error) {
      // What has all come is delivered, and the money is spent.
      if (!meter.complete) fail(error);
    }
    extending = undefined;
    holds.release();
  };
  const write = (bytes: Uint8Array | string) => {
    if (bytes.length === 0 || response.write(bytes)) return;
    holds.add();
    response.once("drain", holds.release);
  };
  answer.pipe({
    data(chunk) {
      if (failure !== undefined) return;
      meter.push(chunk);
      try {
        write(convert === undefined ? chunk : convert.push(chunk));
      } catch (error) {
        fail(error);
      }
      if (extending === undefined && meter.estimatedOutputTokens > reservation.outputTokens) extending = extend();
    },
    end,
  });
  const broken = await ended;
  await extending;
  if (convert !== undefined && (failure ?? broken) === undefined) write(convert.end());
  return failure ?? (meter.complete ? undefined : broken);
}

/** The answer stands still while anything holds it. */
function createHolds(answer: Answer) {
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

/** Says that it failed, then drops the connection: no client may take it for an end. */
function breakOff(response: ServerResponse, lastWords: string): void {
  const timer = setTimeout(() => response.destroy(), lastWordsMs);
  response.once("close", () => clearTimeout(timer));
  response.write(lastWords, () => response.destroy());
}

function parseAnswer(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString("utf8"));
  } catch (error) {
    throw new SlipwayError("invalid_answer", "the endpoint's answer is not JSON", { cause: error });
  }
}

function asSlipwayError(error: unknown): SlipwayError {
  if (error instanceof SlipwayError) return error;
  return new SlipwayError("internal", `the gateway failed: ${(error as Error).message}`, { cause: error });
}
