import { z } from "zod";
import { slugSchema } from "../base/ids.ts";
import { injectedSecretSchema } from "../sandboxes/network.ts";
import { absolutePathSchema } from "../sandboxes/sandbox.ts";

/** What an attempt does with its task, in this order. A later one may send it back to an earlier one. */
export const taskPhases = ["initialise", "build", "integrate", "test", "intent", "verify"] as const;
export type TaskPhase = (typeof taskPhases)[number];

export const commitSchema = z.string().regex(/^[0-9a-f]{40}$/, "expected a commit's 40 hexadecimal digits");

const words = z.string().max(16 * 1024);
const command = z.string().min(1).max(4096);
const gate = z.string().min(1).max(64);

/** What a check of the host has against an attempt's work. */
export const findingSchema = z.strictObject({
  gate,
  text: z
    .string()
    .min(1)
    .max(8 * 1024),
  file: z.string().max(1024).optional(),
  line: z.int().min(1).optional(),
});
export type Finding = Readonly<z.output<typeof findingSchema>>;
export const findingsSchema = z.array(findingSchema).max(32);

/** A part of what the sandboxes of a build share, as Markdown: `intent`, `plan`, `ownership`, ... */
const contextPartSchema = z.strictObject({ name: slugSchema, text: z.string().max(64 * 1024) });

export const taskOrderSchema = z.strictObject({
  task: z.strictObject({
    id: slugSchema,
    title: z.string().min(1).max(200),
    description: z.string().max(4000),
    expectedFiles: z.array(z.string().min(1).max(300)).max(100),
  }),
  /** What is to be true of the app. Never how that is checked. */
  criteria: z.array(z.strictObject({ id: slugSchema, statement: z.string().min(1).max(2000) })).max(60),
  /** The intent in short. */
  intent: words,
  /** The project's own, for a shell in its directory. */
  commands: z.strictObject({ install: command, build: command, test: command, dev: command }).partial().default({}),
  branch: z
    .string()
    .max(200)
    .regex(/^[a-z0-9]+([-_/][a-z0-9]+)*$/, "expected a branch such as attempt/sign-in-2"),
  /** The commit of main that the attempt begins with. */
  base: commitSchema,
  /** A git bundle with the base, for a workspace that has not. */
  bundle: absolutePathSchema.optional(),
  /** The workspace has what the base depends on: nothing is to be installed for it. */
  installed: z.boolean().default(false),
  /** `last-attempt`: the workspace is an earlier attempt's, and its work is gone on with. */
  from: z.enum(["main", "last-attempt"]).default("main"),
  /** Of error escalation; null: the first try. */
  level: z.int().min(0).max(4).nullable().default(null),
  /** What earlier attempts ended with. */
  earlier: z.array(words).max(12).default([]),
  /** At level 0: what has mended such an error before. */
  knownFix: words.optional(),
  /** The model for direct fixes within the run; without it, the run's own. */
  fixModel: z.string().min(1).max(256).optional(),
  /** What is added outside of the sandbox, by name: nobody inside has the value. */
  secrets: z
    .array(injectedSecretSchema.omit({ value: true }))
    .max(32)
    .default([]),
  shared: z.array(contextPartSchema).max(20).default([]),
  /** Direct fixes in a row, before the attempt has failed. */
  maxFixes: z.int().min(0).max(10).default(3),
  /** Of one of the project's commands. */
  commandMs: z.int().min(100).max(3_600_000).default(600_000),
  /** The directory for what is offered: see `offerPath`. */
  offers: absolutePathSchema.default("/var/tmp/slipway-offers"),
});
export type TaskOrder = Readonly<z.output<typeof taskOrderSchema>>;
export type TaskOrderInput = z.input<typeof taskOrderSchema>;

/** Where a task run leaves the git bundle of an offer. */
export function offerPath({ offers }: Pick<TaskOrder, "offers">, number: number): string {
  return `${offers}/${number}.bundle`;
}

/** Where it leaves one of its branch as it is, offered or not. The next commit's replaces it. */
export function openBranchPath({ offers }: Pick<TaskOrder, "offers">): string {
  return `${offers}/open.bundle`;
}

const paths = z.array(z.string().max(1024)).max(200);
const id = z.string().min(1).max(64);

/**
 * A bundle lies at its `offerPath` and wants to be merged. Where nothing is changed and the commit is main's there is
 * none: main is said to have all that the task is for. Numbers rise, and may leave some out; the same one may be told again.
 */
export const offeredSchema = z.strictObject({
  type: z.literal("offered"),
  number: z.int().min(1),
  commit: commitSchema,
  tree: commitSchema,
  /** The commit of main that it holds. */
  main: commitSchema,
  changed: z.int().min(0),
  tests: z.strictObject({ changed: paths, deleted: paths }),
});
export type Offered = z.output<typeof offeredSchema>;

/** What a task run reports beside what its agents do. */
export const taskEventSchemas = [
  /** `round`: from 1; one more each time that an offer comes back. */
  z.strictObject({
    type: z.literal("phase"),
    phase: z.enum(taskPhases),
    status: z.enum(["begun", "finished", "failed"]),
    round: z.int().min(1),
  }),
  /** One of the project's commands has run. */
  z.strictObject({
    type: z.literal("command"),
    phase: z.enum(taskPhases),
    command: z.enum(["install", "build", "test"]),
    ok: z.boolean(),
    durationMs: z.int().min(0),
    /** Its end, when it is long. */
    output: z.string().max(16 * 1024),
  }),
  /** The branch, or an agent at work on it, has another commit; a bundle with it, or with a later one, lies at `openBranchPath`. */
  z.strictObject({ type: z.literal("committed"), commit: commitSchema }),
  /** What the agent says of a criterion. */
  z.strictObject({
    type: z.literal("criterion"),
    criterion: slugSchema,
    satisfied: z.boolean(),
    evidence: z.string().max(4096),
  }),
  /** A wish to change files alone. `claimed` answers it. */
  z.strictObject({ type: z.literal("claim"), id, paths: z.array(z.string().min(1).max(1024)).min(1).max(64) }),
  /** For the other sandboxes of the build. */
  z.strictObject({ type: z.literal("told"), title: z.string().min(1).max(300), text: z.string().max(16 * 1024) }),
  offeredSchema,
] as const;

const sequence = z.int().min(1);

/** What the host tells a task run beside what it tells every run. */
export const taskControlSchemas = [
  /** Main has moved. The bundle has what is between the base, or a main that was told before, and this one. */
  z.object({ sequence, type: z.literal("main"), commit: commitSchema, bundle: absolutePathSchema }),
  /**
   * Of checks beside the work, or of an offer that is not merged: then the run works it over on the newest main and offers
   * again. None: it only has to be put together with main.
   */
  z.object({ sequence, type: z.literal("findings"), offer: z.int().min(1).optional(), findings: findingsSchema }),
  /** `quiet`: agents at work find it where they look, and are not spoken to. */
  z.object({ sequence, type: z.literal("shared"), part: contextPartSchema, quiet: z.boolean().optional() }),
  z.object({
    sequence,
    type: z.literal("claimed"),
    id,
    granted: z.boolean(),
    /** Who holds what is in the way. */
    held: z.array(z.strictObject({ path: z.string().max(1024), owner: z.string().max(128) })).max(64),
  }),
  /** What was offered is in main: the run is over. */
  z.object({ sequence, type: z.literal("merged") }),
] as const;
