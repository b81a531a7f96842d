import { z } from "zod";
import { usageSchema } from "../runs/models.ts";

const count = z.int().min(0);

/** What a provider of models has done since the server began. */
const modelHealthSchema = z.object({
  provider: z.string(),
  requests: count,
  inFlight: count,
  ends: z.object({ complete: count, truncated: count, cut: count, failed: count }),
  retries: count,
  usage: usageSchema,
  microUsd: count,
  lastErrorCode: z.string().optional(),
});
export type ModelHealth = Readonly<z.output<typeof modelHealthSchema>>;

/** What runs sandboxes, why that, and what the settings lack for each of the others; null: nothing. */
const providerHealthSchema = z.object({
  name: z.string(),
  because: z.string(),
  others: z.array(z.object({ name: z.string(), missing: z.string().nullable() })).readonly(),
});
export type ProviderHealth = Readonly<z.output<typeof providerHealthSchema>>;

export const healthSchema = z.object({
  status: z.literal("ok"),
  version: z.string(),
  pid: z.int(),
  models: z.array(modelHealthSchema).readonly().default([]),
  provider: providerHealthSchema.optional(),
});
export type Health = Readonly<z.output<typeof healthSchema>>;

export const errorAnswerSchema = z.object({
  error: z.object({ code: z.string(), message: z.string(), action: z.string() }),
});
