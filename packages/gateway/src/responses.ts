import type { ErrorCode } from "@slipway/contract";
import type { ResponseEnd } from "./health.ts";

/** How a model response of a run ended, to hold against what its agents say. */
export interface SettledResponse {
  readonly end: ResponseEnd;
  readonly code: ErrorCode | undefined;
  /** The model declined to answer. */
  readonly refused?: boolean;
  readonly at: number;
}

/** How the model responses of one run have ended. */
export interface Responses {
  note(response: SettledResponse, startedAt: number): void;
  readonly last: SettledResponse | undefined;
  /** The last one whose model was to blame. */
  readonly lastFailure: SettledResponse | undefined;
  /** When one after another has failed by its model: whoever tries again now only spends. */
  readonly gaveUp: Promise<SettledResponse>;
}

/** The gateway itself has tried each of them as often as makes sense. */
const maxFailures = 3;

const modelFailures: ReadonlySet<ErrorCode | undefined> = new Set<ErrorCode>([
  ...(["invalid_answer", "model_overloaded", "model_rate_limited"] as const),
  ...(["model_timeout", "model_unreachable", "stream_truncated"] as const),
]);

/** `lost`: another gateway had the run before, and took with it what was under way. */
export function createResponses(lost?: SettledResponse): Responses {
  const gaveUp = Promise.withResolvers<SettledResponse>();
  let last: SettledResponse | undefined;
  let lastFailure = lost;
  let failures = 0;
  return {
    note(response, startedAt) {
      last = response;
      if (response.end === "complete") failures = 0;
      if (!modelFailures.has(response.code)) return;
      // What fails at once with another one is not tried again.
      if (failures === 0 || startedAt >= (lastFailure?.at ?? 0)) failures++;
      lastFailure = response;
      if (failures === maxFailures) gaveUp.resolve(response);
    },
    get last() {
      return last;
    },
    get lastFailure() {
      return lastFailure;
    },
    gaveUp: gaveUp.promise,
  };
}
