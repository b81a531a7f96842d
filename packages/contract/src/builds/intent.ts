import { z } from "zod";
import { type ContentHash, contentHashSchema } from "../base/canonical.ts";
import { slugSchema } from "../base/ids.ts";
import { printable } from "../base/printable.ts";
import { surfaceSchema } from "./surface.ts";

/** What a model writes and a person edits stays below these, so that it fits into a prompt. */
export const intentLimits = {
  requestCharacters: 20_000,
  minCriteria: 5,
  maxCriteria: 60,
  minWorkflows: 2,
  maxWorkflows: 20,
} as const;

const plain = z.string().overwrite(printable).trim().min(1);
const line = plain.max(300);
const paragraph = plain.max(2000);

export const criterionKinds = ["functional", "visual", "performance"] as const;
export type CriterionKind = (typeof criterionKinds)[number];

export const criterionSchema = z.strictObject({
  id: slugSchema,
  kind: z.enum(criterionKinds),
  /** What is true of the finished app, so that somebody who only uses it can tell. */
  statement: paragraph,
});

const workflowSchema = z.strictObject({
  id: slugSchema,
  title: line,
  steps: z.array(line).min(1).max(30),
  /** What the user sees when it worked. */
  success: paragraph,
  /** What of the surface it passes, in order, by ids: pages, the controls on them, messages. */
  walk: z.array(slugSchema).min(2).max(60),
});

/** Of an intent that was locked before there was a surface. */
const earlierWorkflowSchema = workflowSchema.partial({ walk: true });

const visualIdentitySchema = z.strictObject({
  mood: paragraph,
  colours: z.array(line).min(1).max(12),
  typography: paragraph,
  layout: paragraph,
});

/** What an intent says beside the request's own words: the model's part, and what a user may edit before the lock. */
export const intentDraftSchema = z.strictObject({
  appType: line,
  character: paragraph,
  coreValue: paragraph,
  criteria: z.array(criterionSchema).min(intentLimits.minCriteria).max(intentLimits.maxCriteria),
  workflows: z.array(workflowSchema).min(intentLimits.minWorkflows).max(intentLimits.maxWorkflows),
  identity: visualIdentitySchema,
  antiPatterns: z.array(line).min(1).max(30),
  surface: surfaceSchema,
});

/** The request as it came from the user. It is data: no model and no edit changes it. */
export const requestTextSchema = plain.max(intentLimits.requestCharacters);

export const intentSchema = intentDraftSchema.extend({
  request: requestTextSchema,
  // Left out as they were, so that the hash stays the same.
  workflows: z.array(earlierWorkflowSchema).min(intentLimits.minWorkflows).max(intentLimits.maxWorkflows),
  surface: surfaceSchema.optional(),
});

/** Every part that an edit names replaces the part that was there. */
export const intentEditSchema = intentDraftSchema.partial();

export type Criterion = Readonly<z.output<typeof criterionSchema>>;
export type Workflow = Readonly<z.output<typeof workflowSchema>>;
export type IntentDraft = Readonly<z.output<typeof intentDraftSchema>>;
export type Intent = Readonly<z.output<typeof intentSchema>>;
export type IntentEdit = z.input<typeof intentEditSchema>;

export const openIntentSchema = z.strictObject({ status: z.literal("open"), intent: intentSchema });
export const lockedIntentSchema = z.strictObject({
  status: z.literal("locked"),
  intent: intentSchema,
  hash: contentHashSchema,
  lockedAtMs: z.int(),
});

/** May still be edited. Nothing is built from it. */
export interface OpenIntent {
  readonly status: "open";
  readonly intent: Intent;
}

/** Nothing of it changes any more, and `hash` proves it. */
export interface LockedIntent {
  readonly status: "locked";
  readonly intent: Intent;
  /** Of the canonical form of `intent`. */
  readonly hash: ContentHash;
  readonly lockedAtMs: number;
}
