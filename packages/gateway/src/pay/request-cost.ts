import { noUsage } from "@slipway/contract";
import { contentParts, imageCharacters, isDocument, type Json } from "../dialects/content.ts";
import { costOf, type ModelPrice } from "../settings/prices.ts";

export interface InputTokens {
  readonly inputTokens: number;
  /** If each byte of its text is a token. */
  readonly mostInputTokens: number;
}

/** Fewer than most texts have: it is better to reserve too much. */
const bytesPerToken = 3.5;
const tokensPerImage = 5000;
/** Of all documents of a request together: a small file can have pages enough to fill what a model reads at once. */
const tokensOfDocuments = 200_000;

/** Of a body as it is sent, in so many bytes. An image costs by its size in pixels, which has little to do with its bytes. */
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

/** All of it at the dearest rate that input can have. */
export function estimateInput(price: ModelPrice, tokens: number): number {
  return costOf({ ...noUsage, input: tokens }, { ...price, input: Math.max(price.input, price.cacheWrite) });
}

export function estimateOutput(price: ModelPrice, tokens: number): number {
  return costOf({ ...noUsage, output: tokens }, price);
}
