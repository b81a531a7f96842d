import { SlipwayError } from "@slipway/contract";
import type { Context } from "hono";
import { HTTPException } from "hono/http-exception";
import type { ContentfulStatusCode } from "hono/utils/http-status";
import type { z } from "zod";

/** Every failure has one shape. What is not expected is told to the log alone. */
export function answerError(error: unknown, context: Context, log: (line: string) => void): Response {
  const known = toSlipwayError(error);
  if (known.code === "internal") log(`${context.req.method} ${context.req.path}: ${stackOf(error)}`);
  return context.json({ error: known.toJSON() }, known.status as ContentfulStatusCode);
}

export function toSlipwayError(error: unknown): SlipwayError {
  if (error instanceof SlipwayError) return error;
  if (error instanceof HTTPException && error.status < 500) return new SlipwayError("invalid_request", error.message);
  return new SlipwayError("internal", "the server failed; its log says more");
}

/** Fails with `invalid_request` that names every field that is wrong. */
export function accept<S extends z.ZodType>(schema: S, value: unknown): z.output<S> {
  const read = schema.safeParse(value);
  if (read.success) return read.data;
  const mistakes = read.error.issues.map(({ path, message }) => [...path, message].join(": "));
  throw new SlipwayError("invalid_request", mistakes.join("; "));
}

function stackOf(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
