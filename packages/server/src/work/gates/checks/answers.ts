import { z } from "zod";

/** Text from a page: untrusted. */
const words = z.string().max(20_000);
/** Path and query. */
const address = z.string().max(300);

/** What the program in the checker sandbox answers to a check. */
export const checkerAnswerSchema = z.discriminatedUnion("type", [
  z.strictObject({ type: z.literal("passed") }),
  z.strictObject({
    type: z.literal("failed"),
    /** Index of the check's step. */
    step: z.int().min(0).max(100),
    /** `missing`: the target is not visible; `there`: it is and must not be; `refused`: the action on it failed. */
    why: z.enum(["missing", "there", "refused", "unopened", "stuck"]),
    /** The browser's own message; it may name the target. */
    detail: words,
    /** The accessibility tree of the page. */
    page: words,
    /** Errors of the page. */
    errors: z.array(words).max(20),
  }),
  /** One value per visit; null: there was nothing to measure. */
  z.strictObject({ type: z.literal("measured"), values: z.array(z.number().nullable()).max(10) }),
  z.strictObject({
    type: z.literal("looked"),
    pages: z.array(z.strictObject({ path: address, leadsTo: address.nullable(), shows: words })).max(40),
    /** What was opened and could not be read. */
    unread: z.array(address).max(40),
    /** Links led to more. */
    hasMore: z.boolean(),
  }),
  z.strictObject({ type: z.literal("broken"), detail: words }),
]);

export type CheckerAnswer = Readonly<z.output<typeof checkerAnswerSchema>>;
