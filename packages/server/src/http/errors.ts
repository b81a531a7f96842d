import { SlipwayError } from "@slipway/contract";
import type { Context } from "hono";
import { HTTPException } from "hono/http-exception";
import type { ContentfulStatusCode } from "hono/utils/http-status";
import type { z } from "zod";

/** Every failure has one shape. Only the log tells an unexpected one. */
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

/** Each value as its schema reads it; undefined without a schema. Fails with `invalid_request` that names every field that is wrong. */
export function acceptAll(...parts: readonly (readonly [z.ZodType | undefined, unknown])[]): unknown[] {
  const read = parts.map(([schema, value]) => schema?.safeParse(value));
  const issues = read.flatMap((part) => part?.error?.issues ?? []);
  if (issues.length === 0) return read.map((part) => part?.data);
  const mistakes = issues.map(({ path, message }) => [...path, message].join(": "));
  throw new SlipwayError("invalid_request", mistakes.join("; "));
}

function stackOf(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
