import { z } from "zod";
import { candidateIdSchema, sandboxIdSchema } from "../base/ids.ts";
import { candidateStatuses } from "./build.ts";

/** The bridge: what the sandboxes of one build tell each other. All of it is said by somebody and proves nothing. */
export const bridgeTopics = [
  "context",
  "file-change",
  "errors",
  "progress",
  "merge",
  "conflicts",
  "discoveries",
] as const;
export type BridgeTopic = (typeof bridgeTopics)[number];

export const bridgeLimits = {
  /** Of one payload as JSON, before it is compressed. */
  maxPayloadBytes: 1024 * 1024,
  /** Levels of arrays and objects in a payload's free part. */
  maxDepth: 32,
  maxMessagesPerBuild: 1_000_000,
  maxPageMessages: 100,
  maxClaimPaths: 256,
  /** Paths of one build that were ever claimed. */
  maxClaimedPaths: 100_000,
  minLeaseMs: 1000,
  maxLeaseMs: 3_600_000,
} as const;

type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };

const line = z.string().trim().min(1).max(300);
const words = z.string().max(16 * 1024);
const json = z.custom<Json>((value) => isJson(value, bridgeLimits.maxDepth), {
  message: `expected JSON of at most ${bridgeLimits.maxDepth} levels`,
});

/** Who says something or claims a file: a sandbox, an attempt, or a part of the host. */
export const bridgeNameSchema = z
  .string()
  .max(128)
  .regex(/^[a-zA-Z0-9][a-zA-Z0-9_.:-]*$/, "expected a name such as sbx_... or host");

/** A file of the build's repository, spelt in one way only. */
export const repositoryPathSchema = z
  .string()
  .min(1)
  .max(1024)
  .refine(isPlainPath, "expected a path such as src/main.ts, relative to the repository");

export const contextSections = [
  "intent",
  "plan",
  "phases",
  "verifications",
  "tournaments",
  "errors",
  "fixes",
  "patterns",
  "rules",
  "preferences",
  "decisions",
  "features",
  "ownership",
  "merges",
] as const;
export type ContextSection = (typeof contextSections)[number];

const bridgePayloadSchemas = {
  /** One entry of the build's shared context. The last value of a name counts; null takes the entry out. */
  context: z.strictObject({ section: z.enum(contextSections), name: line, value: json }),
  "file-change": z.strictObject({
    sandbox: sandboxIdSchema,
    path: repositoryPathSchema,
    action: z.enum(["created", "changed", "deleted"]),
    /** Of the file's content as it is now; null when it is gone. */
    hash: z
      .string()
      .regex(/^[0-9a-f]{40,64}$/)
      .nullable(),
  }),
  errors: z.strictObject({ title: line, text: words, detail: json.optional() }),
  progress: z.strictObject({ phase: line, text: words, detail: json.optional() }),
  merge: z.strictObject({ candidate: candidateIdSchema, status: z.enum(candidateStatuses), text: words }),
  conflicts: z.strictObject({
    paths: z.array(repositoryPathSchema).min(1).max(1000),
    between: z.array(bridgeNameSchema).min(1).max(20),
    text: words,
  }),
  discoveries: z.strictObject({ title: line, text: words, detail: json.optional() }),
} as const satisfies Record<BridgeTopic, z.ZodType>;

const said = {
  /** Chosen by the sender, one per message of a build: a message that is sent again with the same key is there once. */
  key: z
    .string()
    .max(256)
    .regex(/^[\x21-\x7e]+$/, "expected printable characters without a space"),
  from: bridgeNameSchema,
};

export const outgoingMessageSchema = z.discriminatedUnion("topic", [
  z.strictObject({ topic: z.literal("context"), ...said, payload: bridgePayloadSchemas.context }),
  z.strictObject({ topic: z.literal("file-change"), ...said, payload: bridgePayloadSchemas["file-change"] }),
  z.strictObject({ topic: z.literal("errors"), ...said, payload: bridgePayloadSchemas.errors }),
  z.strictObject({ topic: z.literal("progress"), ...said, payload: bridgePayloadSchemas.progress }),
  z.strictObject({ topic: z.literal("merge"), ...said, payload: bridgePayloadSchemas.merge }),
  z.strictObject({ topic: z.literal("conflicts"), ...said, payload: bridgePayloadSchemas.conflicts }),
  z.strictObject({ topic: z.literal("discoveries"), ...said, payload: bridgePayloadSchemas.discoveries }),
]);
export type OutgoingMessage = Readonly<z.output<typeof outgoingMessageSchema>>;

/** `offset` counts the messages of the build, over all topics: from 1, by one, without a gap. */
export type BridgeMessage = OutgoingMessage & { readonly offset: number; readonly at: number };

export const claimRequestSchema = z.strictObject({
  paths: z.array(repositoryPathSchema).min(1).max(bridgeLimits.maxClaimPaths),
  owner: bridgeNameSchema,
  leaseMs: z.int().min(bridgeLimits.minLeaseMs).max(bridgeLimits.maxLeaseMs),
});
export type ClaimRequest = Readonly<z.output<typeof claimRequestSchema>>;

/** `token` rises with every claim of the path: whoever shows a lower one is late. */
export interface Claim {
  readonly path: string;
  readonly owner: string;
  readonly token: number;
  readonly expiresAt: number;
}

/** All paths or none: `held` are the claims of others that are in the way. */
export type ClaimAnswer =
  | { readonly granted: true; readonly claims: readonly Claim[] }
  | { readonly granted: false; readonly held: readonly Claim[] };

/** What a consumer could not take. The message stays in the log at its offset. */
export interface DeadLetter {
  readonly consumer: string;
  readonly offset: number;
  readonly tries: number;
  readonly reason: string;
  readonly at: number;
}

export type SharedContext = { readonly [S in ContextSection]?: { readonly [name: string]: unknown } };

/** The shared context after one more message. Messages are applied in their order, others than of `context` change nothing. */
export function applyToContext(context: SharedContext, message: OutgoingMessage): SharedContext {
  if (message.topic !== "context") return context;
  const { section, name, value } = message.payload;
  const entries = new Map(Object.entries(context[section] ?? {}));
  if (value === null) entries.delete(name);
  else entries.set(name, value);
  return { ...context, [section]: Object.fromEntries(entries) };
}

function isJson(value: unknown, levels: number): value is Json {
  if (value === null || typeof value === "string" || typeof value === "boolean") return true;
  if (typeof value === "number") return Number.isFinite(value);
  if (typeof value !== "object" || levels === 0) return false;
  if (Array.isArray(value)) return value.every((entry) => isJson(entry, levels - 1));
  const prototype = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) return false;
  return Object.values(value).every((entry) => isJson(entry, levels - 1));
}

function isPlainPath(path: string): boolean {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is refused
  if (/[\u0000-\u001f\u007f\\]/.test(path) || !path.isWellFormed()) return false;
  return path.split("/").every((segment) => segment !== "" && segment !== "." && segment !== "..");
}
