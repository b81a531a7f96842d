import { z } from "zod";
import { attemptIdSchema, buildIdSchema } from "../base/ids.ts";
import { candidateStatuses } from "../builds/build.ts";
import { gateResultSchema, mainFileSchema } from "../builds/merge.ts";
import { candidateViewSchema } from "../builds/view.ts";
import { apiLimits, branchIdSchema, queryCount } from "./route.ts";

const name = z.string().min(1).max(256);
const at = z.int().min(0);
const count = z.int().min(0);

/** What the merge queue of a build does and has done. */
export const mergeQueueViewSchema = z.object({
  main: name.nullable(),
  /** How many candidates are tested on top of each other. */
  window: count,
  candidates: z.array(candidateViewSchema),
  /** In the order of main. */
  merges: z.array(z.object({ position: z.int().min(1), task: name, commit: name, mergedAt: at })),
  /** How the runs of each gate have ended. */
  gates: z.array(z.object({ name, passed: count, failed: count, broken: count })),
});
export type MergeQueueView = Readonly<z.output<typeof mergeQueueViewSchema>>;

/** `building`: its attempt is under way. `unoffered`: the attempt has ended before it was offered. */
const branchStatuses = [...candidateStatuses, "building", "unoffered"] as const;

/** An attempt's work, kept under a ref of its own until it is on main or a person discards it. */
export const branchViewSchema = z.object({
  id: branchIdSchema,
  task: name,
  attempt: attemptIdSchema,
  commit: name,
  /** What git fetches it by, from the build's repository. */
  ref: name,
  status: z.enum(branchStatuses),
  reason: z.string().nullable(),
  /** When it was offered; else when its attempt began. */
  at,
});
export type BranchView = Readonly<z.output<typeof branchViewSchema>>;

export const branchesViewSchema = z.object({
  /** On the server's machine. Null: there is none yet. */
  repository: z.string().nullable(),
  /** The oldest first. */
  branches: z.array(branchViewSchema),
});
export type BranchesView = Readonly<z.output<typeof branchesViewSchema>>;

/** What there is of a main that has no dev server. */
const insteadViewSchema = z.object({
  reason: z.string(),
  /** To be cloned, on the server's machine. */
  repository: z.string(),
  branch: name,
  commit: name,
  /** The last verdict of each gate on what was merged last. */
  gates: z.array(z.object({ name, verdict: gateResultSchema.shape.verdict })),
});
export type InsteadView = Readonly<z.output<typeof insteadViewSchema>>;

/** Main as it runs. */
export const previewViewSchema = z.object({
  build: buildIdSchema,
  /** On the server's machine; whoever has it may look. Null: it is closed. */
  address: z.string().nullable(),
  /** Null: main has a dev server, or is closed. */
  instead: insteadViewSchema.nullable().default(null),
});
export type PreviewView = Readonly<z.output<typeof previewViewSchema>>;

/** What git names a file's bytes by: `git cat-file blob` in the build's repository gives them. */
const blob = name;

/** Files of main at a commit, or what of them differs from an earlier one. */
export const filesViewSchema = z.object({
  commit: name,
  /** In the order of their paths. Without an earlier commit all of them are `added`. */
  files: z.array(mainFileSchema.extend({ /** Null: it is deleted. */ blob: blob.nullable() })),
  /** What `after` is for the next page. Null: this is the last one. */
  next: z.string().nullable(),
});

export const fileViewSchema = z.object({
  commit: name,
  path: z.string(),
  /** The content of a link is where it leads. Nobody has followed it. */
  type: z.enum(["file", "executable", "link"]),
  bytes: count,
  blob,
  /** Null: it is no text, or too large. */
  content: z.string().nullable(),
});

const commitQuerySchema = z.string().regex(/^[0-9a-f]{40}$/, "expected the whole name of a commit");
const pathQuerySchema = z.string().min(1).max(1024);

/** Of main, at a commit that main has or had. */
export const filesQuerySchema = z.strictObject({
  /** Left out: main as it is now. */
  commit: commitQuerySchema.optional(),
  /** An earlier one: only what differs from it. */
  since: commitQuerySchema.optional(),
  /** Only files behind this path. */
  after: pathQuerySchema.optional(),
  limit: queryCount(apiLimits.maxFilesPage, 1000),
});

export const fileQuerySchema = z.strictObject({ commit: commitQuerySchema.optional(), path: pathQuerySchema });
