import {
  bridgeLimits,
  bridgeNameSchema,
  bridgeTopics,
  claimRequestSchema,
  repositoryPathSchema,
  SlipwayError,
} from "@slipway/contract";
import { z } from "zod";

const leaseMs = claimRequestSchema.shape.leaseMs;

export const readRangeSchema = z.strictObject({
  after: z.int().min(0),
  topics: z.array(z.enum(bridgeTopics)).min(1).optional(),
  limit: z.int().min(1).max(bridgeLimits.maxPageMessages).default(bridgeLimits.maxPageMessages),
});

const heldClaimSchema = z.strictObject({ path: repositoryPathSchema, token: z.int().min(1) });
export const renewSchema = heldClaimSchema.extend({ leaseMs });
export const releaseSchema = heldClaimSchema;

const reasonCharacters = 4096;
export const deadLetterSchema = z.strictObject({
  consumer: bridgeNameSchema,
  offset: z.int().min(1),
  tries: z.int().min(1),
  reason: z.string().transform((reason) => reason.slice(0, reasonCharacters).toWellFormed().replaceAll("\0", "")),
});
export const tryOfMessageSchema = z.strictObject({ consumer: bridgeNameSchema, offset: z.int().min(1) });

/** Messages and claims come from sandboxes. Input that does not fit is the caller's mistake; the error says where. */
export function parseInput<S extends z.ZodType>(schema: S, value: unknown): z.output<S> {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  throw new SlipwayError("invalid_request", z.prettifyError(result.error));
}

/** The log has lost its end, or the offset is another build's. A subscriber would wait forever. */
export function refusePastEnd(build: string, after: number, head: number): void {
  if (after <= head) return;
  throw new SlipwayError(
    "invalid_request",
    `there is no offset ${after} in the log of ${build}, which ends at ${head}`,
  );
}
