import type { ErrorCode } from "@slipway/contract";
import type { PaidTokens } from "../pay/funds.ts";
import type { ResponseEnd } from "./health.ts";

/** How a model response of a run ended, to compare with what its agents report. */
export interface SettledResponse {
  readonly end: ResponseEnd;
  readonly code: ErrorCode | undefined;
  /** The model declined to answer. */
  readonly refused?: boolean;
  /** The size of the request as paid for. */
  readonly paid?: PaidTokens;
  readonly at: number;
}

/** Cut off by the model or by the budget. A response that the agent itself aborted does not count. */
export function wasCutOff({ end, code }: SettledResponse): boolean {
  return end === "truncated" || code === "budget_exhausted";
}

/** How the model responses of one run have ended. */
export interface Responses {
  note(response: SettledResponse, startedAt: number): void;
  readonly last: SettledResponse | undefined;
  /** The last one that failed because of its model. */
  readonly lastFailure: SettledResponse | undefined;
  readonly paid: PaidTokens;
  /** Notes a request that was refused unsent because the run could not pay for it. */
  noteUnpayable(): void;
  readonly hadUnpayable: boolean;
  /** Resolves after several model failures in a row: another try would only spend money. */
  readonly gaveUp: Promise<SettledResponse>;
}

/** The gateway has already retried each of them. */
const maxFailures = 3;

const modelFailures: ReadonlySet<ErrorCode | undefined> = new Set<ErrorCode>([
  ...(["invalid_answer", "model_overloaded", "model_rate_limited"] as const),
  ...(["model_timeout", "model_unreachable", "stream_truncated"] as const),
]);

/** `before` stands for requests lost by an earlier process. It explains no failure once a model has answered. */
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
      // A response aborted by the run's end says nothing about earlier ones. Neither does one that ran beside a cut-off
      // response.
      const isBeside = last !== undefined && wasCutOff(last) && response.end === "complete" && startedAt < last.at;
      if (response.code !== "run_ended" && !isBeside) last = response;
      paid = largest(paid, response.paid);
      if (response.end === "complete") {
        failures = 0;
        lost = undefined;
      }
      if (!modelFailures.has(response.code)) return;
      lastFailure = response;
      // A request already under way when another one failed is not a further try.
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
