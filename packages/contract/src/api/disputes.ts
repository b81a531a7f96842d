import { z } from "zod";
import { disputeJudges, disputeStatuses } from "../builds/dispute.ts";

const name = z.string().min(1).max(256);
const at = z.int().min(0);
const lines = z.array(z.string());

/** A check that work kept failing while it passed all else. */
export const disputeViewSchema = z.object({
  /** From 1, per build. */
  number: z.int().min(1),
  /** Whose work it was. */
  task: name,
  criterion: name,
  status: z.enum(disputeStatuses),
  /** Who decides, or has decided. */
  by: z.enum(disputeJudges),
  because: z.string().nullable(),
  /** The check as it was disputed, step by step. */
  check: lines,
  /** The step that failed, by index. */
  step: z.int().min(0),
  /** The check in its place. Null: it was not compiled anew. */
  replacement: lines.nullable(),
  openedAt: at,
  endedAt: at.nullable(),
});
export type DisputeView = Readonly<z.output<typeof disputeViewSchema>>;

export const disputesViewSchema = z.object({ disputes: z.array(disputeViewSchema) });
