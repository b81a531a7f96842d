import { z } from "zod";

/** What a model is asked for. Settings name a model for each; `fix-1` to `fix-4` are the levels of error escalation. */
export const modelRoles = ["intent", "plan", "build", "fix-1", "fix-2", "fix-3", "fix-4", "judge", "vision"] as const;
export type ModelRole = (typeof modelRoles)[number];

/** Tokens of one or many model responses. `input` counts neither cache reads nor cache writes. */
export interface Usage {
  readonly input: number;
  readonly output: number;
  readonly cacheRead: number;
  readonly cacheWrite: number;
}

export const noUsage: Usage = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 };

export function addUsage(a: Usage, b: Usage): Usage {
  return {
    input: a.input + b.input,
    output: a.output + b.output,
    cacheRead: a.cacheRead + b.cacheRead,
    cacheWrite: a.cacheWrite + b.cacheWrite,
  };
}

const count = z.int().min(0).max(Number.MAX_SAFE_INTEGER);
export const usageSchema = z.strictObject({ input: count, output: count, cacheRead: count, cacheWrite: count });

/** Money is whole millionths of a US dollar. */
export const microUsdPerUsd = 1_000_000;
