import { z } from "zod";

export const apiLimits = {
  maxBodyBytes: 1024 * 1024,
  maxBuildsPage: 100,
  maxEventsPage: 500,
  maxFilesPage: 1000,
  /** Of a file whose content is answered. */
  maxFileBytes: 1024 * 1024,
  /** Between two signs of life of a stream of events. */
  heartbeatMs: 15_000,
} as const;

/** The header that makes an order count once, however often it is sent. */
export const idempotencyHeader = "idempotency-key";
export const idempotencyKeySchema = z.string().regex(/^[A-Za-z0-9_-]{1,64}$/, "expected up to 64 letters and digits");

export const queryCount = (most: number, otherwise: number) =>
  z
    .string()
    .regex(/^\d{1,9}$/, "expected a whole number")
    .transform(Number)
    .pipe(z.int().min(1).max(most))
    .default(otherwise);

/** A number of an event; 0 is before the first. */
export const sequenceSchema = z
  .string()
  .regex(/^\d{1,15}$/, "expected the number of an event")
  .transform(Number);
