import { randomUUID } from "node:crypto";
import { microUsdPerUsd, type RunId, SlipwayError } from "@slipway/contract";
import type { Ledger } from "../ports/ports.ts";
import type { ModelPrice } from "../settings/prices.ts";
import type { Estimates } from "./estimates.ts";
import { patient, unlessAborted } from "./patience.ts";
import { estimateInput, estimateOutput, type InputTokens } from "./request-cost.ts";

/** Money reserved for one response. Dispose it after settling. */
export interface Reservation extends Disposable {
  /** The request's id in the ledger. */
  readonly request: string;
  /** The output covered so far. */
  readonly outputTokens: number;
  /** The minimum of output to cover. With less, the request is refused. */
  readonly neededTokens: number;
  /** The run can pay for less than the request allows: limit the endpoint to this. */
  readonly lowerLimit: number | undefined;
  /** Upper bound of the output, given an estimate: the endpoint obeys a limit. */
  boundOf(estimatedTokens: number): number;
  /** False: call `extend` before more arrives. */
  covers(estimatedTokens: number): boolean;
  /** Covers at least this much output. Fails with `budget_exhausted`. */
  extend(estimatedTokens: number): Promise<void>;
}

export interface ReservationRequest extends InputTokens {
  readonly run: RunId;
  readonly price: ModelPrice;
  /** The estimates of its run. */
  readonly estimates: Estimates;
  readonly signal: AbortSignal;
  /** What the request allows. The model's limit applies, too. */
  readonly maxOutputTokens: number | undefined;
  /** Possible hidden thinking: billed, but known only at the end. `Infinity`: unlimited. */
  readonly hiddenTokens: number;
  /** A streamed response can be cut, so its output is reserved as it arrives. */
  readonly streamed: boolean;
}

const firstSliceTokens = 1024;
/** Slices of a long response grow, to write the ledger less often. */
const lastSliceTokens = 16 * 1024;

/** A lower limit would only cut off a model in the middle of its first thought. */
export const leastTokens = 4096;
/** Few responses are longer: a request with this limit need not wait for more. */
const ampleTokens = 16 * 1024;
/** Estimates are at most this many times too high. A longer response comes from an endpoint that ignores limits. */
export const mostExcess = 2;

/**
 * Reserves the input and the output that can arrive before it is counted: the first slice, or all of it. Lowers the
 * limit to what the run can pay for, since an endpoint may send its whole answer at once. Fails with
 * `budget_exhausted`.
 */
export async function reserve(books: Ledger, asked: ReservationRequest): Promise<Reservation> {
  const { run, price, estimates, hiddenTokens, signal } = asked;
  const ledger = patient(books, signal);
  const request = randomUUID();
  const maxTokens = Math.min(asked.maxOutputTokens ?? price.maxOutputTokens, price.maxOutputTokens);
  const firstTokens = asked.streamed ? Math.min(firstSliceTokens + hiddenTokens, maxTokens) : maxTokens;
  const boundTokens = Number.isFinite(hiddenTokens) ? firstSliceTokens + hiddenTokens : 0;
  const neededTokens = Math.min(firstTokens, Math.max(leastTokens, boundTokens));
  const first = await reserveFirst(ledger, asked, { request, maxTokens, firstTokens, neededTokens });
  const { limitTokens } = first;
  let { outputTokens } = first;
  let allowedTokens = outputTokens;
  let sliceTokens = firstSliceTokens;
  const isLowered = limitTokens < maxTokens;
  const boundOf = (tokens: number) => (tokens > mostExcess * limitTokens ? tokens : Math.min(tokens, limitTokens));
  // Where the money ends, do not rely on the endpoint to stop.
  const tokensToCover = (tokens: number) => (isLowered ? tokens : boundOf(tokens));
  const take = async (more: number) => {
    if (!(await ledger.extend(request, estimateOutput(price, more)))) return false;
    outputTokens += more;
    allowedTokens = outputTokens;
    return true;
  };
  return {
    request,
    neededTokens,
    lowerLimit: isLowered ? limitTokens : undefined,
    get outputTokens() {
      return outputTokens;
    },
    boundOf,
    covers: (tokens) => tokensToCover(tokens) <= allowedTokens,
    async extend(tokens) {
      const missing = tokensToCover(tokens) - outputTokens;
      const ahead = Math.max(missing, sliceTokens);
      sliceTokens = Math.min(2 * sliceTokens, lastSliceTokens);
      if ((await take(ahead)) || (await take(missing))) return;
      const missingMicroUsd = estimateOutput(price, missing);
      const shortMicroUsd = missingMicroUsd - (await ledger.left(run));
      const isHeldByOthers = shortMicroUsd > 0 && shortMicroUsd <= estimates.exceededMicroUsd;
      if (!first.isEstimate || !isHeldByOthers) throw await exhausted(ledger, run, missingMicroUsd);
      // They hold more than they are likely to need, and this is the one response that may exceed the budget.
      allowedTokens = outputTokens + missing + sliceTokens;
    },
    [Symbol.dispose]: first.release,
  };
}

interface FirstReservation {
  readonly request: string;
  /** What the request allows. */
  readonly maxTokens: number;
  /** Output to cover at first when reserving by estimate. */
  readonly firstTokens: number;
  /** Less is not worth a request. */
  readonly neededTokens: number;
}

interface FirstReserved {
  readonly isEstimate: boolean;
  readonly outputTokens: number;
  /** The limit for the endpoint. */
  readonly limitTokens: number;
  release(): void;
}

/**
 * One request at a time is reserved by estimate, the others at their worst case. A request that would be covered if all
 * were reserved by estimate waits for the open ones.
 */
async function reserveFirst(
  ledger: Ledger,
  { run, price, inputTokens, mostInputTokens, estimates, signal }: ReservationRequest,
  { request, maxTokens, firstTokens, neededTokens }: FirstReservation,
): Promise<FirstReserved> {
  const leastMicroUsd = estimateInput(price, inputTokens) + estimateOutput(price, neededTokens);
  const reserveWith = async (inputMicroUsd: number, wantedTokens: number, fewestTokens: number) => {
    const cost = (tokens: number) => inputMicroUsd + estimateOutput(price, tokens);
    if (await ledger.reserve({ request, run, microUsd: cost(wantedTokens) })) return wantedTokens;
    const room = (await ledger.left(run)) - inputMicroUsd;
    const fewer = Math.min(wantedTokens, tokensFor(price, room));
    if (fewer >= fewestTokens && (await ledger.reserve({ request, run, microUsd: cost(fewer) }))) return fewer;
    return undefined;
  };
  using held = new DisposableStack();
  let estimate: Disposable | undefined;
  for (;;) {
    signal.throwIfAborted();
    const nextEnd = estimates.nextEnd();
    const before = estimates.exceededMicroUsd;
    estimate ??= held.use(estimates.take());
    const isEstimate = estimate !== undefined;
    const inputMicroUsd = estimateInput(price, isEstimate ? inputTokens : mostInputTokens);
    const wantedTokens = isEstimate ? firstTokens : maxTokens;
    // What others give back may cover more.
    const fewestTokens = isEstimate && before === 0 ? neededTokens : Math.max(neededTokens, ampleTokens);
    const payable = tokensFor(price, (await ledger.left(run)) + before - inputMicroUsd);
    const outputTokens = await reserveWith(inputMicroUsd, wantedTokens, fewestTokens);
    if (outputTokens !== undefined) {
      held.use(estimates.exceed(inputMicroUsd + estimateOutput(price, outputTokens) - leastMicroUsd));
      const isFirstSlice = isEstimate && outputTokens === firstTokens;
      const limitTokens = isFirstSlice ? Math.min(maxTokens, Math.max(payable, outputTokens)) : outputTokens;
      const kept = held.move();
      return { isEstimate, outputTokens, limitTokens, release: () => kept.dispose() };
    }
    const leftMicroUsd = await ledger.left(run);
    // Others may have ended or started meanwhile.
    const exceeded = Math.max(before, estimates.exceededMicroUsd);
    if (leftMicroUsd + exceeded < leastMicroUsd || (isEstimate && exceeded === 0)) {
      throw await exhausted(ledger, run, leastMicroUsd);
    }
    await unlessAborted(nextEnd, signal);
  }
}

function tokensFor(price: ModelPrice, microUsd: number): number {
  return price.output === 0 ? Number.POSITIVE_INFINITY : Math.max(0, Math.floor(microUsd / price.output));
}

async function exhausted(ledger: Ledger, run: RunId, neededMicroUsd: number): Promise<SlipwayError> {
  const { budgetMicroUsd } = await ledger.balance(run);
  const left = `${usd(await ledger.left(run))} of ${usd(budgetMicroUsd)} USD`;
  return new SlipwayError("budget_exhausted", `the run has ${left} left and needs ${usd(neededMicroUsd)} USD more`);
}

function usd(microUsd: number): string {
  return (microUsd / microUsdPerUsd).toFixed(4);
}
