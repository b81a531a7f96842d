import { z } from "zod";
import { slugSchema } from "../base/ids.ts";

/** A step of a check of a criterion or workflow, by index. */
export const checkPlaceSchema = z.strictObject({
  criterion: slugSchema,
  check: z.int().min(0),
  step: z.int().min(0),
});
export type CheckPlace = Readonly<z.output<typeof checkPlaceSchema>>;

/** What can be wrong where work keeps failing a check. */
export const culprits = ["app", "check"] as const;
export type Culprit = (typeof culprits)[number];

/** Who decides that. */
export const disputeJudges = ["judge", "user"] as const;
export type DisputeJudge = (typeof disputeJudges)[number];

/** `judge`: a model looks at it. `user`: it waits for the user. `app`, `check`: this was found to be wrong. */
export const disputeStatuses = [...disputeJudges, ...culprits] as const;
export type DisputeStatus = (typeof disputeStatuses)[number];

/** The user's word on a dispute. */
export const rulingSchema = z.strictObject({
  wrong: z.enum(culprits),
  /** One sentence: of the app, agents read it; of the check, the model that compiles it anew. */
  because: z.string().trim().min(1).max(500),
});
export type Ruling = z.input<typeof rulingSchema>;
