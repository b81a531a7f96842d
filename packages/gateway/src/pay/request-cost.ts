import { noUsage } from "@slipway/contract";
import { contentParts, imageCharacters, isDocument, type Json } from "../dialects/content.ts";
import { costOf, type ModelPrice } from "../settings/prices.ts";

export interface InputTokens {
  readonly inputTokens: number;
  /** As if each byte of text were a token. */
  readonly mostInputTokens: number;
}

/** Fewer than in most texts: better to reserve too much. */
const bytesPerToken = 3.5;
const tokensPerImage = 5000;
/** For all documents of a request: even a small file can have enough pages to fill a model's context. */
const tokensOfDocuments = 200_000;

/** Estimates a body as sent. An image costs by its pixels, not by its bytes. */
export function estimateInputTokens(body: Json, sentBytes: number): InputTokens {
  let bytes = sentBytes;
  let images = 0;
  let documents = false;
  for (const part of contentParts(body)) {
    documents ||= isDocument(part);
    const characters = imageCharacters(part);
    if (characters === 0) continue;
    bytes -= characters;
    images++;
  }
  const textBytes = Math.max(0, bytes);
  const otherTokens = images * tokensPerImage + (documents ? tokensOfDocuments : 0);
  return { inputTokens: Math.ceil(textBytes / bytesPerToken) + otherTokens, mostInputTokens: textBytes + otherTokens };
}

/** At the highest rate for input. */
export function estimateInput(price: ModelPrice, tokens: number): number {
  return costOf({ ...noUsage, input: tokens }, { ...price, input: Math.max(price.input, price.cacheWrite) });
}

export function estimateOutput(price: ModelPrice, tokens: number): number {
  return costOf({ ...noUsage, output: tokens }, price);
}
