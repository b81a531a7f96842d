import { randomUUID } from "node:crypto";
import { microUsdPerUsd, type RunId, SlipwayError } from "@slipway/contract";
import type { Ledger } from "../ports/ports.ts";
import type { ModelPrice } from "../settings/prices.ts";
import type { Estimates } from "./estimates.ts";
import { patient, unlessAborted } from "./patience.ts";
import { estimateInput, estimateOutput, type InputTokens } from "./request-cost.ts";

/** Money that is set aside for one response; disposed after it is settled. */
export interface Reservation extends Disposable {
  /** In the ledger. */
  readonly request: string;
  /** How much output is covered. */
  readonly outputTokens: number;
  /** How much output had to be covered: with less the request is refused. */
  readonly neededTokens: number;
  /** The endpoint must be held to this: the run can pay for less than the request allows. */
  readonly lowerLimit: number | undefined;
  /** How much output a response has at most that is estimated to have so much: the endpoint is held to a limit. */
  boundOf(estimatedTokens: number): number;
  /** False: `extend` is to be called before more comes. */
  covers(estimatedTokens: number): boolean;
  /** Covers more output, up to this at least; fails with `budget_exhausted`. */
  extend(estimatedTokens: number): Promise<void>;
}

export interface ReservationRequest extends InputTokens {
  readonly run: RunId;
  readonly price: ModelPrice;
  /** Of its run. */
  readonly estimates: Estimates;
  readonly signal: AbortSignal;
  /** What the request allows; the model's limit holds, too. */
  readonly maxOutputTokens: number | undefined;
  /** What the model may think without a word: it is billed, and known only at the end. `Infinity`: nothing bounds it. */
  readonly hiddenTokens: number;
  /** A streamed response can be cut, so that its output is reserved as it comes. */
  readonly streamed: boolean;
}

const firstSliceTokens = 1024;
/** A long response takes larger slices, so that the ledger is not written for every few chunks. */
const lastSliceTokens = 16 * 1024;

/** A limit that is lowered further would only cut a model off in the middle of its first thought. */
export const leastTokens = 4096;
/** Few responses are longer: what is held to no less need not wait for more. */
const ampleTokens = 16 * 1024;
/** By so much are estimates too high at most. A response that seems longer comes from an endpoint that heeds no limit. */
export const mostExcess = 2;

/**
 * Sets aside the input, and the output that can come before it is counted: the first slice, or all of it. What the run
 * can not pay for is ruled out by a lower limit, since an endpoint may send all of its answer at once. Fails with
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
  // Where the money ends, it is not left to the endpoint to stop.
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
      // They hold more than they are likely to need, and this is the one response that may pass the budget.
      allowedTokens = outputTokens + missing + sliceTokens;
    },
    [Symbol.dispose]: first.release,
  };
}

interface FirstReservation {
  readonly request: string;
  /** What the request allows. */
  readonly maxTokens: number;
  /** What is covered at first where it is reserved by estimate. */
  readonly firstTokens: number;
  /** Less is not worth a request. */
  readonly neededTokens: number;
}

interface FirstReserved {
  readonly isEstimate: boolean;
  readonly outputTokens: number;
  /** What the endpoint is held to. */
  readonly limitTokens: number;
  release(): void;
}

/**
 * Beside a request that is reserved by estimate, others are reserved at their worst. One that would be covered if all
 * were reserved by estimate waits for what is open.
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
    // What others give back may be enough for more.
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
    // Others may have ended or begun meanwhile.
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
  const message = `the run has ${usd(await ledger.left(run))} USD of its ${usd(budgetMicroUsd)} USD left, and ${usd(neededMicroUsd)} USD more are needed`;
  return new SlipwayError("budget_exhausted", message);
}

function usd(microUsd: number): string {
  return (microUsd / microUsdPerUsd).toFixed(4);
}
