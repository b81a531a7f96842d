import { z } from "zod";
import { type ContentHash, contentHashSchema } from "../base/canonical.ts";
import { slugSchema } from "../base/ids.ts";
import { earlierCheckSchemas } from "./earlier-checks.ts";
import { type PerformanceMetric, performanceMetrics } from "./performance.ts";
import { variableNameSchema } from "./surface.ts";

/**
 * What is done to a candidate to find out whether a criterion holds or a workflow succeeds. Checks see an app from the
 * outside only, and name nothing but what the surface names, by id. Values, sequences and expectations are theirs alone:
 * no context of an agent and no sandbox with a candidate has them.
 */
const text = z.string().trim().min(1).max(500);

/** Values for the variables of a name or a path. */
const values = z
  .array(z.strictObject({ variable: variableNameSchema, value: text }))
  .max(10)
  .default([]);

const ofControl = { control: slugSchema, with: values };

/** What a visitor must see: something of the surface, or a value that the check has entered before. */
const seenSchema = z.union([
  z.strictObject(ofControl),
  z.strictObject({ message: slugSchema, with: values }),
  z.strictObject({ value: text }),
]);

const step = z.discriminatedUnion("action", [
  /** A page whose path has variables is opened at the address where a visitor has been before. */
  z.strictObject({ action: z.literal("open"), page: slugSchema }),
  z.strictObject({ action: z.literal("click"), ...ofControl }),
  z.strictObject({ action: z.literal("fill"), ...ofControl, value: z.string().max(2000) }),
  z.strictObject({ action: z.literal("choose"), ...ofControl, value: text }),
  z.strictObject({ action: z.literal("press"), key: z.string().min(1).max(40) }),
  z.strictObject({ action: z.literal("reload") }),
  /** The steps that follow are another visitor's. The first one begins; a new one has to open a page. */
  z.strictObject({ action: z.literal("switch"), visitor: z.int().min(1).max(3) }),
  z.strictObject({ action: z.literal("see"), what: seenSchema }),
  z.strictObject({ action: z.literal("see-nothing-of"), what: seenSchema }),
]);

const scalar = z.union([z.string().max(2000), z.number(), z.boolean()]);
const fieldValues = z
  .array(z.strictObject({ field: z.string().max(120), value: scalar }))
  .max(20)
  .default([]);

const call = z.strictObject({
  route: slugSchema,
  /** For the variables of the path: a value, or what an earlier answer had. */
  with: z
    .array(
      z.union([
        z.strictObject({ variable: variableNameSchema, value: text }),
        z.strictObject({ variable: variableNameSchema, kept: variableNameSchema }),
      ]),
    )
    .max(10)
    .default([]),
  send: fieldValues,
  expect: z.strictObject({
    /** Any status of success, or any that refuses the request. */
    answer: z.enum(["accepted", "refused"]),
    /** In a list, one entry with the value is enough. */
    has: fieldValues,
    lacks: fieldValues,
  }),
  keep: z
    .array(z.strictObject({ field: z.string().max(120), as: variableNameSchema }))
    .max(5)
    .default([]),
});

const proves = slugSchema;

const checkSchemas = [
  z.strictObject({
    type: z.literal("visit"),
    proves,
    viewport: z.enum(["phone", "desktop"]),
    steps: z.array(step).min(2).max(50),
    /** What a picture of the page at the end must show, for a model that sees. Null: the steps say it all. */
    appearance: z.string().trim().min(1).max(2000).nullable(),
  }),
  /** The calls happen in order, with the cookies that the ones before have set. */
  z.strictObject({ type: z.literal("calls"), proves, calls: z.array(call).min(1).max(20) }),
  z.strictObject({
    type: z.literal("measure"),
    proves,
    page: slugSchema,
    /** What shows that the page is there. */
    sees: seenSchema,
    metric: z.enum(Object.keys(performanceMetrics) as [PerformanceMetric, ...PerformanceMetric[]]),
    atMost: z.number().positive(),
  }),
] as const;

export const checkSchema = z.discriminatedUnion("type", checkSchemas);
/** As they are kept. Intents that were locked before there was a surface keep their checks. */
export const keptCheckSchema = z.discriminatedUnion("type", [...checkSchemas, ...earlierCheckSchemas]);

export type Check = Readonly<z.output<typeof checkSchema>>;
export type KeptCheck = Readonly<z.output<typeof keptCheckSchema>>;
export type CheckInput = Readonly<z.input<typeof checkSchema>>;
export type VisitStep = z.output<typeof step>;
export type Call = z.output<typeof call>;
export type CheckOf<T extends KeptCheck["type"]> = Extract<KeptCheck, { readonly type: T }>;
export type Seen = z.output<typeof seenSchema>;

const maxChecks = 200;
export const checkListSchema = z.strictObject({ checks: z.array(checkSchema).min(1).max(maxChecks) });

export const compiledChecksSchema = z.strictObject({ intentHash: contentHashSchema, checks: z.array(checkSchema) });

/** What the lock has made of an intent's criteria and workflows. */
export interface CompiledChecks {
  readonly intentHash: ContentHash;
  readonly checks: readonly Check[];
}
