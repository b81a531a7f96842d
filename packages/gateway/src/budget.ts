import { randomUUID } from "node:crypto";
import { microUsdPerUsd, type RunId, SlipwayError, type Usage } from "@slipway/contract";
import { contentParts, imageCharacters, isDocument, type Json } from "./content.ts";
import type { Meter } from "./dialects/dialect.ts";
import type { Ledger } from "./ports.ts";
import { costOf, type ModelPrice } from "./prices.ts";

/** Money that is set aside for one response. */
export interface Reservation {
  /** In the ledger. */
  readonly request: string;
  /** How much output is covered. */
  readonly outputTokens: number;
  /** Covers more output, up to this at least; fails with `budget_exhausted`. */
  extend(outputTokens: number): Promise<void>;
}

export interface ReservationRequest {
  readonly run: RunId;
  readonly price: ModelPrice;
  readonly inputTokens: number;
  /** What the request allows; the model's limit holds, too. */
  readonly maxOutputTokens: number | undefined;
  /** What the model may think without a word: it is billed, and known only at the end. */
  readonly hiddenTokens: number;
  /** A streamed response can be cut, so that its output is reserved as it comes. */
  readonly streamed: boolean;
}

const firstSliceTokens = 1024;
/** A long response takes larger slices, so that the ledger is not written for every few chunks. */
const lastSliceTokens = 16 * 1024;

/** Sets aside the estimated input and the first slice of the output, or all of it. Fails with `budget_exhausted`. */
export async function reserve(ledger: Ledger, asked: ReservationRequest): Promise<Reservation> {
  const { run, price } = asked;
  const maxTokens = Math.min(asked.maxOutputTokens ?? price.maxOutputTokens, price.maxOutputTokens);
  const request = randomUUID();
  let outputTokens = asked.streamed ? Math.min(firstSliceTokens + asked.hiddenTokens, maxTokens) : maxTokens;
  let sliceTokens = firstSliceTokens;
  const microUsd = estimateInput(price, asked.inputTokens) + estimateOutput(price, outputTokens);
  if (!(await ledger.reserve({ request, run, microUsd }))) throw await exhausted(ledger, run, microUsd);
  const take = async (more: number) => {
    if (!(await ledger.extend(request, estimateOutput(price, more)))) return false;
    outputTokens += more;
    return true;
  };
  return {
    request,
    get outputTokens() {
      return outputTokens;
    },
    async extend(wantedTokens) {
      const missing = wantedTokens - outputTokens;
      const ahead = Math.max(missing, sliceTokens);
      sliceTokens = Math.min(2 * sliceTokens, lastSliceTokens);
      if ((await take(ahead)) || (await take(missing))) return;
      throw await exhausted(ledger, run, estimateOutput(price, missing));
    },
  };
}

/** What a response is billed as: by the endpoint's own count, or by estimate where that is missing or not the last. */
export function countUsage(meter: Meter, inputTokens: number): { readonly usage: Usage; readonly estimated: boolean } {
  const told = meter.usage;
  if (meter.reported) return { usage: told, estimated: false };
  const toldInput = told.input + told.cacheRead + told.cacheWrite > 0;
  const output = Math.max(told.output, meter.estimatedOutputTokens);
  return { usage: toldInput ? { ...told, output } : { ...told, input: inputTokens, output }, estimated: true };
}

/** Fewer than most texts have: it is better to reserve too much. */
const bytesPerToken = 3.5;
const tokensPerImage = 5000;
/** Of all documents of a request together: a small file can have pages enough to fill what a model reads at once. */
const tokensOfDocuments = 200_000;

/** Of a body as it is sent, with its JSON. An image costs by its size in pixels, which has little to do with its bytes. */
export function estimateInputTokens(body: Json, json: string): number {
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
  const text = Math.ceil(Math.max(0, bytes) / bytesPerToken);
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
  const { budgetMicroUsd, spentMicroUsd, reservedMicroUsd } = await ledger.balance(run);
  const left = usd(Math.max(0, budgetMicroUsd - spentMicroUsd - reservedMicroUsd));
  const message = `the run has ${left} USD of its ${usd(budgetMicroUsd)} USD left, and ${usd(neededMicroUsd)} USD more are needed`;
  return new SlipwayError("budget_exhausted", message);
}

function usd(microUsd: number): string {
  return (microUsd / microUsdPerUsd).toFixed(4);
}
