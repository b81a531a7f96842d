import { type ErrorCode, SlipwayError } from "@slipway/contract";
import { z } from "zod";

/** Parses what a client sent. */
export function parseRequest<S extends z.ZodType>(schema: S, body: unknown): z.output<S> {
  return parse(schema, body, "invalid_request", "The request cannot be read");
}

/** Parses what an endpoint answered. */
export function parseAnswer<S extends z.ZodType>(schema: S, value: unknown): z.output<S> {
  return parse(schema, value, "invalid_answer", "The model's answer cannot be read");
}

export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new SlipwayError("invalid_answer", "The model's answer cannot be read: a line of it is not JSON.");
  }
}

/** Parses JSON text that must be an object, such as a tool's input. Undefined if it is not. */
export function parseObject(text: string): Record<string, unknown> | undefined {
  try {
    return jsonObject.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}

export const jsonObject = z.record(z.string(), z.unknown());

/** The shapes of objects by their `type`. Unknown types become undefined: vendors add types all the time. */
export function byType<S extends Readonly<Record<string, z.ZodRawShape>>>(shapes: S) {
  const schemas = new Map(Object.entries(shapes).map(([type, shape]) => [type, z.object(shape)]));
  return z.looseObject({ type: z.string() }).transform((value, context): Typed<S> | undefined => {
    const result = schemas.get(value.type)?.safeParse(value);
    for (const { path, message } of result?.error?.issues ?? []) context.addIssue({ code: "custom", path, message });
    return result?.data && ({ type: value.type, ...result.data } as Typed<S>);
  });
}

type Typed<S extends Readonly<Record<string, z.ZodRawShape>>> = {
  [T in keyof S & string]: { type: T } & z.output<z.ZodObject<S[T]>>;
}[keyof S & string];

/** A list of parts, or a text in its place. */
export function partsOrText<S extends z.ZodType>(part: S, textType: string) {
  return z.preprocess(
    (value) => (typeof value === "string" ? [{ type: textType, text: value }] : value),
    z.array(part).transform((parts) => parts.filter((one) => one !== undefined)),
  );
}

/** The message names fields but never quotes their content, which may be a prompt. */
function parse<S extends z.ZodType>(schema: S, value: unknown, code: ErrorCode, what: string): z.output<S> {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const issues = result.error.issues
    .slice(0, 5)
    .map(({ path, message }) => (path.length === 0 ? message : `${path.join(".")}: ${message}`));
  throw new SlipwayError(code, `${what}: ${issues.join("; ")}.`);
}
