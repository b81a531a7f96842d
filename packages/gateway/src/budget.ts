import { randomUUID } from "node:crypto";
import { microUsdPerUsd, type RunId, SlipwayError, type Usage } from "@slipway/contract";
import { contentParts, imageCharacters, isDocument, type Json } from "./content.ts";
import type { Meter } from "./dialects/dialect.ts";
import type { Estimates } from "./estimates.ts";
import type { Balance, Ledger } from "./ports.ts";
import { costOf, type ModelPrice } from "./prices.ts";

/** Money that is set aside for one response; disposed after it is settled. */
export interface Reservation extends Disposable {
  /** In the ledger. */
  readonly request: string;
  /** How much output is covered. */
  readonly outputTokens: number;
  /** The endpoint must be held to this: the budget covers less than the request allows, and the answer can not be cut. */
  readonly lowerLimit: number | undefined;
  /** Covers more output, up to this at least; fails with `budget_exhausted`. */
  extend(outputTokens: number): Promise<void>;
}

export interface ReservationRequest {
  readonly run: RunId;
  readonly price: ModelPrice;
  readonly inputTokens: number;
  readonly mostInputTokens: number;
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
const leastTokens = 4096;

/**
 * Sets aside the input, and the output that can come before it is counted: the first slice, or all of it. Where the
 * budget does not cover all of it, what is left may be enough for an answer with a lower limit. Fails with
 * `budget_exhausted`.
 */
export async function reserve(ledger: Ledger, asked: ReservationRequest): Promise<Reservation> {
  const { run, price, hiddenTokens } = asked;
  const request = randomUUID();
  const maxTokens = Math.min(asked.maxOutputTokens ?? price.maxOutputTokens, price.maxOutputTokens);
  const wantedTokens = asked.streamed ? Math.min(firstSliceTokens + hiddenTokens, maxTokens) : maxTokens;
  const boundTokens = Number.isFinite(hiddenTokens) ? firstSliceTokens + hiddenTokens : 0;
  const neededTokens = Math.min(wantedTokens, Math.max(leastTokens, boundTokens));
  const first = await reserveFirst(ledger, asked, { request, wantedTokens, neededTokens });
  let { outputTokens } = first;
  let sliceTokens = firstSliceTokens;
  const take = async (more: number) => {
    if (!(await ledger.extend(request, estimateOutput(price, more)))) return false;
    outputTokens += more;
    return true;
  };
  return {
    request,
    lowerLimit: outputTokens < wantedTokens ? outputTokens : undefined,
    get outputTokens() {
      return outputTokens;
    },
    async extend(tokens) {
      const missing = tokens - outputTokens;
      const ahead = Math.max(missing, sliceTokens);
      sliceTokens = Math.min(2 * sliceTokens, lastSliceTokens);
      if ((await take(ahead)) || (await take(missing))) return;
      throw await exhausted(ledger, run, estimateOutput(price, missing));
    },
    [Symbol.dispose]: first.release,
  };
}

interface FirstReservation {
  readonly request: string;
  readonly wantedTokens: number;
  /** Less is not worth a request. */
  readonly neededTokens: number;
}

/**
 * Beside a request that is reserved by estimate, others are reserved at their worst. One that would be covered if all
 * were reserved by estimate waits for what is open.
 */
async function reserveFirst(
  ledger: Ledger,
  { run, price, inputTokens, mostInputTokens, estimates, signal }: ReservationRequest,
  { request, wantedTokens, neededTokens }: FirstReservation,
): Promise<{ readonly outputTokens: number; release(): void }> {
  const estimatedMicroUsd = estimateInput(price, inputTokens);
  const worstMicroUsd = estimateInput(price, mostInputTokens);
  const leastMicroUsd = estimatedMicroUsd + estimateOutput(price, neededTokens);
  const reserveWith = async (inputMicroUsd: number) => {
    const cost = (tokens: number) => inputMicroUsd + estimateOutput(price, tokens);
    if (await ledger.reserve({ request, run, microUsd: cost(wantedTokens) })) return wantedTokens;
    const room = left(await ledger.balance(run)) - inputMicroUsd;
    const fewer = Math.min(wantedTokens, Math.floor(room / price.output));
    if (fewer >= neededTokens && (await ledger.reserve({ request, run, microUsd: cost(fewer) }))) return fewer;
    return undefined;
  };
  using held = new DisposableStack();
  let estimate: Disposable | undefined;
  for (;;) {
    signal.throwIfAborted();
    const nextEnd = estimates.nextEnd();
    const before = estimates.exceededMicroUsd;
    estimate ??= held.use(estimates.take());
    const outputTokens = await reserveWith(estimate ? estimatedMicroUsd : worstMicroUsd);
    if (outputTokens !== undefined) {
      if (!estimate) held.use(estimates.exceed(worstMicroUsd - estimatedMicroUsd));
      const kept = held.move();
      return { outputTokens, release: () => kept.dispose() };
    }
    const leftMicroUsd = left(await ledger.balance(run));
    // Others may have ended or begun meanwhile.
    const exceeded = Math.max(before, estimates.exceededMicroUsd);
    if (leftMicroUsd + exceeded < leastMicroUsd || (estimate && exceeded === 0)) {
      throw await exhausted(ledger, run, leastMicroUsd);
    }
    await nextEnd;
  }
}

/** What a response is taken to have cost where the endpoint does not say. */
export interface Unreported {
  readonly inputTokens: number;
  readonly unseenTokens: number;
}

/** What a response is billed as: by the endpoint's own count, or by estimate where that is missing or not the last. */
export function countUsage(
  meter: Meter,
  unreported: Unreported,
): { readonly usage: Usage; readonly estimated: boolean } {
  const told = meter.usage;
  if (meter.reported) return { usage: told, estimated: false };
  const toldInput = told.input + told.cacheRead + told.cacheWrite > 0;
  const output = Math.max(told.output, meter.estimatedOutputTokens, unreported.unseenTokens);
  const input = toldInput ? told.input : unreported.inputTokens;
  return { usage: { ...told, input, output }, estimated: true };
}

/** Fewer than most texts have: it is better to reserve too much. */
const bytesPerToken = 3.5;
const tokensPerImage = 5000;
/** Of all documents of a request together: a small file can have pages enough to fill what a model reads at once. */
const tokensOfDocuments = 200_000;

/** Of a body as it is sent, with its JSON. An image costs by its size in pixels, which has little to do with its bytes. */
export function estimateInputTokens(body: Json, json: string, textBytesPerToken = bytesPerToken): number {
  let bytes = Buffer.byteLength(json);
  let images = 0;
  let documents = false;
  for (const part of contentParts(body)) {
    documents ||= isDocument(part);
    const characters = imageCharacters(part);
    if (characters === 0) continue;
    bytes -= characters;
    images++;
  }
  const text = Math.ceil(Math.max(0, bytes) / textBytesPerToken);
  return text + images * tokensPerImage + (documents ? tokensOfDocuments : 0);
}

/** All of it at the dearest rate that input can have. */
function estimateInput(price: ModelPrice, tokens: number): number {
  return costOf({ ...noUsage, input: tokens }, { ...price, input: Math.max(price.input, price.cacheWrite) });
}

function estimateOutput(price: ModelPrice, tokens: number): number {
  return costOf({ ...noUsage, output: tokens }, price);
}

export const noUsage: Usage = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 };

async function exhausted(ledger: Ledger, run: RunId, neededMicroUsd: number): Promise<SlipwayError> {
  const balance = await ledger.balance(run);
  const message = `the run has ${usd(left(balance))} USD of its ${usd(balance.budgetMicroUsd)} USD left, and ${usd(neededMicroUsd)} USD more are needed`;
  return new SlipwayError("budget_exhausted", message);
}

function left({ budgetMicroUsd, spentMicroUsd, reservedMicroUsd }: Balance): number {
  return Math.max(0, budgetMicroUsd - spentMicroUsd - reservedMicroUsd);
}

function usd(microUsd: number): string {
  return (microUsd / microUsdPerUsd).toFixed(4);
}
