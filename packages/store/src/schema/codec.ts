import { SlipwayError } from "@slipway/contract";
import { z } from "zod";

const maxJsonLength = 4 * 1024 * 1024;

/** A value that is kept as JSON text. */
export function jsonText<S extends z.ZodType>(schema: S) {
  return z.codec(z.string().max(maxJsonLength), schema, {
    decode: (text) => JSON.parse(text) as z.input<S>,
    encode: (value) => JSON.stringify(value),
  });
}

/** A yes or no that is kept as 1 or 0. */
export const flag = z.codec(z.int(), z.boolean(), { decode: (bit) => bit === 1, encode: (value) => (value ? 1 : 0) });

/** Takes what a caller gives; fails with `invalid_request`. */
export function accept<S extends z.ZodType>(schema: S, value: unknown): z.output<S> {
  return checked(schema.safeParse(value));
}

/** What a caller gives, as a row of the database; fails with `invalid_request`. */
export function toRow<S extends z.ZodType>(schema: S, record: z.output<S>): z.input<S> {
  return checked(z.safeEncode(schema, record));
}

function checked<T>(result: z.ZodSafeParseResult<T>): T {
  if (result.success) return result.data;
  throw new SlipwayError("invalid_request", z.prettifyError(result.error));
}
