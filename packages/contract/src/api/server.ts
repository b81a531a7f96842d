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

export const healthSchema = z.object({
  status: z.literal("ok"),
  version: z.string(),
  pid: z.int(),
  models: z.array(modelHealthSchema).readonly().default([]),
});
export type Health = Readonly<z.output<typeof healthSchema>>;

export const errorAnswerSchema = z.object({
  error: z.object({ code: z.string(), message: z.string(), action: z.string() }),
});
