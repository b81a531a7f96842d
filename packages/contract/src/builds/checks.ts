import { z } from "zod";
import { type ContentHash, contentHashSchema } from "../base/canonical.ts";
import { slugSchema } from "../base/ids.ts";

/**
 * What is done to a candidate to find out whether a criterion holds or a workflow succeeds. Checks see an app from the
 * outside only. They are kept apart from the intent: no context of an agent and no sandbox with a candidate has them.
 */
const text = z.string().trim().min(1).max(500);

/** On the candidate's own server: there is no way to name another. */
const localPath = z
  .string()
  .max(1000)
  .regex(/^\/(?![/\\])[^\s\\]*$/, "expected a path such as /items?page=2");

const status = z.int().min(100).max(599);

const httpExpectation = z.strictObject({
  status,
  bodyContains: z.array(text).max(20),
  bodyLacks: z.array(text).max(20),
});

const httpExchange = z.strictObject({
  method: z.enum(["GET", "POST", "PUT", "PATCH", "DELETE"]),
  path: localPath,
  /** Sent as JSON when it parses as such, else as text. */
  body: z.string().max(10_000).nullable(),
  expect: httpExpectation,
});

/** As a person finds it on the page: by its role and its name, not by how the page is written. */
const target = z.strictObject({
  role: z.enum([
    "button",
    "link",
    "textbox",
    "checkbox",
    "radio",
    "combobox",
    "heading",
    "image",
    "tab",
    "listitem",
    "text",
  ]),
  name: text,
});

const browserStep = z.discriminatedUnion("action", [
  z.strictObject({ action: z.literal("open"), path: localPath }),
  z.strictObject({ action: z.literal("click"), target }),
  z.strictObject({ action: z.literal("fill"), target, value: z.string().max(2000) }),
  z.strictObject({ action: z.literal("choose"), target, value: text }),
  z.strictObject({ action: z.literal("press"), key: z.string().min(1).max(40) }),
  z.strictObject({ action: z.literal("reload") }),
  z.strictObject({ action: z.literal("see"), target }),
  z.strictObject({ action: z.literal("see-nothing-of"), target }),
]);

export const performanceMetrics = {
  firstByteMs: 60_000,
  largestPaintMs: 60_000,
  interactionMs: 60_000,
  transferKilobytes: 1_000_000,
  layoutShift: 10,
} as const satisfies Record<string, number>;

const proves = slugSchema;

export const checkSchema = z.discriminatedUnion("type", [
  /** The exchanges happen in order, with the cookies that the ones before have set. */
  z.strictObject({ type: z.literal("http"), proves, exchanges: z.array(httpExchange).min(1).max(20) }),
  z.strictObject({
    type: z.literal("browser"),
    proves,
    viewport: z.enum(["phone", "desktop"]),
    steps: z.array(browserStep).min(2).max(50),
    /** What a picture of the page at the end must show, for a model that sees. Null: the steps say it all. */
    appearance: z.string().trim().min(1).max(2000).nullable(),
  }),
  z.strictObject({
    type: z.literal("performance"),
    proves,
    path: localPath,
    metric: z.enum(Object.keys(performanceMetrics) as [PerformanceMetric, ...PerformanceMetric[]]),
    atMost: z.number().positive(),
  }),
]);

export type PerformanceMetric = keyof typeof performanceMetrics;
export type Check = Readonly<z.output<typeof checkSchema>>;

const maxChecks = 200;
export const checkListSchema = z.strictObject({ checks: z.array(checkSchema).min(1).max(maxChecks) });

export const compiledChecksSchema = z.strictObject({ intentHash: contentHashSchema, checks: z.array(checkSchema) });

/** What the lock has made of an intent's criteria and workflows. */
export interface CompiledChecks {
  readonly intentHash: ContentHash;
  readonly checks: readonly Check[];
}
