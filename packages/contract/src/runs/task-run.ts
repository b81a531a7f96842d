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
export const contextPartSchema = z.strictObject({ name: slugSchema, text: z.string().max(64 * 1024) });

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
  /** The names that the app keeps. */
  surface: z
    .string()
    .max(64 * 1024)
    .default(""),
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
  /** `last-attempt`: the workspace is an earlier attempt's, and its work is continued. */
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
