import { SlipwayError } from "@slipway/contract";
import { z } from "zod";

const maxJsonLength = 4 * 1024 * 1024;

/** A value stored as JSON text. */
export function jsonText<S extends z.ZodType>(schema: S) {
  return z.codec(z.string().max(maxJsonLength), schema, {
    decode: (text) => JSON.parse(text) as z.input<S>,
    encode: (value) => JSON.stringify(value),
  });
}

/** A boolean stored as 1 or 0. */
export const flag = z.codec(z.int(), z.boolean(), { decode: (bit) => bit === 1, encode: (value) => (value ? 1 : 0) });

/** Parses a caller's value. Fails with `invalid_request`. */
export function accept<S extends z.ZodType>(schema: S, value: unknown): z.output<S> {
  return checked(schema.safeParse(value));
}

/** Encodes a caller's record as a row. Fails with `invalid_request`. */
export function toRow<S extends z.ZodType>(schema: S, record: z.output<S>): z.input<S> {
  return checked(z.safeEncode(schema, record));
}

function checked<T>(result: z.ZodSafeParseResult<T>): T {
  if (result.success) return result.data;
  throw new SlipwayError("invalid_request", z.prettifyError(result.error));
}
