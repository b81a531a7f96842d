import { z } from "zod";

/** What the program in the checker sandbox says of a check. It quotes a page, which nobody vouches for. */
const words = z.string().max(20_000);

export const checkerAnswerSchema = z.discriminatedUnion("type", [
  z.strictObject({ type: z.literal("passed") }),
  z.strictObject({
    type: z.literal("failed"),
    /** Of the check's steps, from 0. */
    step: z.int().min(0).max(100),
    /** `missing`: the target is not to be seen; `there`: it is, and should not be; `refused`: what was done to it had no success. */
    why: z.enum(["missing", "there", "refused", "unopened", "stuck"]),
    /** The browser's own words; they may name the target. */
    detail: words,
    /** The page as a screen reader tells it. */
    page: words,
    /** Errors that the page had. */
    errors: z.array(words).max(20),
  }),
  /** One figure for each time; null: there was nothing to measure. */
  z.strictObject({ type: z.literal("measured"), values: z.array(z.number().nullable()).max(10) }),
  z.strictObject({ type: z.literal("broken"), detail: words }),
]);

export type CheckerAnswer = Readonly<z.output<typeof checkerAnswerSchema>>;
