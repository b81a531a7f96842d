import type { ServerResponse } from "node:http";
import { SlipwayError } from "@slipway/contract";
import { type Answer, collect } from "../send/answer.ts";
import { refusal } from "../send/retry.ts";
import { type Delivery, passStream } from "./pass-stream.ts";
import { translateWhole } from "./translate.ts";

/** How the endpoint's answer ended, and how to finish the agent's response once the request is settled. */
export interface Delivered {
  readonly error: SlipwayError | undefined;
  close(): void;
}

const maxAnswerBytes = 32 * 1024 * 1024;
/** Gives up on a reader that does not take the last words. */
const lastWordsMs = 1000;

/** Passes chunks on as they arrive, at the speed of the slower side, as far as the budget goes. */
export async function deliverStream(answer: Answer, delivery: Delivery): Promise<Delivered> {
  const type = answer.contentType || "no type";
  if (!type.startsWith("text/event-stream")) {
    await collect(answer, maxAnswerBytes);
    throw new SlipwayError("invalid_answer", `the endpoint answered ${type} to a streamed request`);
  }
  delivery.response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-cache" });
  const broken = await passStream(answer, delivery);
  const { dialect, meter, prepared, response } = delivery;
  if (broken === undefined && meter.complete) return { error: undefined, close: () => response.end() };
  const { failure } = meter;
  if (broken === undefined && failure !== undefined) {
    const error = refusal(prepared.route.endpoint, failure.status, failure.message);
    return { error, close: () => response.end() };
  }
  const error = broken ?? new SlipwayError("stream_truncated", "the endpoint ended its answer too early");
  return { error, close: () => breakOff(response, dialect.writeStreamError(error)) };
}

/** Sends a whole answer once all of it is here. */
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

/** Reports the failure, then drops the connection, so that no client takes it for an end. */
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
