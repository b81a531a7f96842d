import type { ErrorCode } from "@slipway/contract";
import type { PaidTokens } from "../pay/funds.ts";
import type { ResponseEnd } from "./health.ts";

/** How a model response of a run ended, to hold against what its agents say. */
export interface SettledResponse {
  readonly end: ResponseEnd;
  readonly code: ErrorCode | undefined;
  /** The model declined to answer. */
  readonly refused?: boolean;
  /** How large its request counts as, by what was paid for it. */
  readonly paid?: PaidTokens;
  readonly at: number;
}

/** By its model, or by the budget. One that the agent itself broke off is not missed. */
export function wasCutOff({ end, code }: SettledResponse): boolean {
  return end === "truncated" || code === "budget_exhausted";
}

/** How the model responses of one run have ended. */
export interface Responses {
  note(response: SettledResponse, startedAt: number): void;
  readonly last: SettledResponse | undefined;
  /** The last one whose model was to blame. */
  readonly lastFailure: SettledResponse | undefined;
  readonly paid: PaidTokens;
  /** A request was refused, before it was sent, since the run could not pay for it. */
  noteUnpayable(): void;
  readonly hadUnpayable: boolean;
  /** When one after another has failed by its model: whoever tries again now only spends. */
  readonly gaveUp: Promise<SettledResponse>;
}

/** The gateway itself has tried each of them as often as makes sense. */
const maxFailures = 3;

const modelFailures: ReadonlySet<ErrorCode | undefined> = new Set<ErrorCode>([
  ...(["invalid_answer", "model_overloaded", "model_rate_limited"] as const),
  ...(["model_timeout", "model_unreachable", "stream_truncated"] as const),
]);

/** `before`: the run was open before, and what was under way then is lost. Once a model has answered, that explains no failure. */
export function createResponses(before?: SettledResponse): Responses {
  const gaveUp = Promise.withResolvers<SettledResponse>();
  let last: SettledResponse | undefined;
  let lost = before;
  let lastFailure: SettledResponse | undefined;
  let paid: PaidTokens = { inputTokens: 0, outputTokens: 0 };
  let hadUnpayable = false;
  let failures = 0;
  let countedAt = 0;
  return {
    note(response, startedAt) {
      // What the run's end has broken off tells nothing of the answers before it, nor does a call beside one that was cut off.
      const isBeside = last !== undefined && wasCutOff(last) && response.end === "complete" && startedAt < last.at;
      if (response.code !== "run_ended" && !isBeside) last = response;
      paid = largest(paid, response.paid);
      if (response.end === "complete") {
        failures = 0;
        lost = undefined;
      }
      if (!modelFailures.has(response.code)) return;
      lastFailure = response;
      // What was under way when another one failed is not a further try.
      if (failures > 0 && startedAt < countedAt) return;
      failures++;
      countedAt = response.at;
      if (failures === maxFailures) gaveUp.resolve(response);
    },
    get last() {
      return last;
    },
    get lastFailure() {
      return lastFailure ?? lost;
    },
    get paid() {
      return paid;
    },
    noteUnpayable() {
      hadUnpayable = true;
    },
    get hadUnpayable() {
      return hadUnpayable;
    },
    gaveUp: gaveUp.promise,
  };
}

function largest(before: PaidTokens, { inputTokens, outputTokens }: PaidTokens = before): PaidTokens {
  return {
    inputTokens: Math.max(before.inputTokens, inputTokens),
    outputTokens: Math.max(before.outputTokens, outputTokens),
  };
}
