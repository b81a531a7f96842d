import { SlipwayError } from "@slipway/contract";
import { dialects } from "../dialects/index.ts";
import type { Answer, Sink } from "../send/answer.ts";
import type { Send, UpstreamRequest } from "../send/upstream.ts";
import type { CassetteSettings } from "../settings/settings.ts";
import { type CassetteDirectory, openCassetteDirectory, type Recording } from "./cassette.ts";
import { nearestDifference } from "./difference.ts";
import { keyOf, normalise } from "./normalise.ts";

/** Sends requests through recordings. A repeated request gets the next recording. */
export function createCassettes({ directory, mode }: CassetteSettings, send: Send): Send {
  const cassettes = openCassetteDirectory(directory);
  const answers = new Map<string, number>();
  /** Index of the next answer to a request. It advances only after an answer. */
  const next = (key: string) => answers.get(key) ?? 0;
  const count = (key: string) => answers.set(key, next(key) + 1);
  return async (request, signal, onSent) => {
    const normalised = normalise(request);
    const key = keyOf(normalised);
    const recording = mode === "record" ? undefined : find(cassettes, key, next(key), mode);
    if (recording !== undefined) {
      count(key);
      return replayed(recording);
    }
    if (mode === "replay") throw missing(cassettes, normalised);
    return recorded(await send(request, signal, onSent), request, (response) => {
      cassettes.write(key, next(key), { request: normalised, ...response });
      count(key);
    });
  };
}

/** A replay that asks more often than the recording did gets the last answer again. */
function find(
  cassettes: CassetteDirectory,
  key: string,
  index: number,
  mode: "replay" | "auto",
): Recording | undefined {
  for (let i = index; i >= 0; i--) {
    const recording = cassettes.read(key, i);
    if (recording !== undefined || mode === "auto") return recording;
  }
  return undefined;
}

function missing(cassettes: CassetteDirectory, normalised: string): SlipwayError {
  const difference = nearestDifference(normalised, cassettes.requests());
  return new SlipwayError("cassette_missing", `No recording of this request. Nearest:\n${difference}`);
}

function replayed({ status, contentType, body }: Recording): Answer {
  return {
    status,
    contentType,
    retryAfter: undefined,
    pipe(sink) {
      sink.data(body);
      sink.end();
    },
    // The whole body is here: nothing to pause or drop.
    pause() {},
    resume() {},
    abort() {},
  };
}

/** Records a successful answer that reached its end. */
function recorded(
  answer: Answer,
  { dialect }: UpstreamRequest,
  keep: (response: Omit<Recording, "request">) => void,
): Answer {
  const { status, contentType } = answer;
  if (status < 200 || status >= 300) return answer;
  const meter = dialects[dialect].meter();
  const chunks: Uint8Array[] = [];
  const recording = (sink: Sink): Sink => ({
    data(chunk) {
      meter.push(chunk);
      chunks.push(chunk);
      sink.data(chunk);
    },
    end(error) {
      try {
        if (error === undefined && meter.complete) keep({ status, contentType, body: Buffer.concat(chunks) });
        sink.end(error);
      } catch (cause) {
        sink.end(new SlipwayError("internal", "the answer could not be recorded", { cause }));
      }
    },
  });
  return { ...answer, pipe: (sink) => answer.pipe(recording(sink)) };
}
