import { z } from "zod";
import { slugSchema } from "../base/ids.ts";
import { type PerformanceMetric, performanceMetrics } from "./performance.ts";

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

const proves = slugSchema;

/** Checks of intents that were locked before there was a surface: they name controls and texts themselves. */
export const earlierCheckSchemas = [
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
] as const;
