import type { Usage } from "@slipway/contract";
import { z } from "zod";

/** Usage as OpenAI and Google count it: prompt tokens include those of the cache. */
export function usageOf(prompt: number, output: number, details: z.output<typeof promptDetails>): Usage {
  const [cacheRead, cacheWrite] = [details?.cached_tokens ?? 0, details?.cache_write_tokens ?? 0];
  return { input: Math.max(0, prompt - cacheRead - cacheWrite), output, cacheRead, cacheWrite };
}

export function promptTokens({ input, cacheRead, cacheWrite }: Usage): number {
  return input + cacheRead + cacheWrite;
}

export const count = z.int().min(0);
export const promptDetails = z
  .object({ cached_tokens: count.nullish(), cache_write_tokens: count.nullish() })
  .nullish();

export function writeDetails({ cacheRead, cacheWrite }: Usage): z.output<typeof promptDetails> {
  return { cached_tokens: cacheRead, cache_write_tokens: cacheWrite };
}
