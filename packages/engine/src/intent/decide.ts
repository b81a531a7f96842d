import {
  contentHash,
  type Intent,
  type IntentDraft,
  intentEditSchema,
  intentLimits,
  intentSchema,
  type LockedIntent,
  type OpenIntent,
  requestTextSchema,
  SlipwayError,
} from "@slipway/contract";
import type { z } from "zod";
import type { Finding } from "../ask/ask.ts";
import { checkSurface, repeated } from "./surface.ts";

/** The request as it is kept: without anything that a terminal or a prompt would take for more than text. */
export function readRequest(text: string): string {
  if (text.length > intentLimits.requestCharacters) {
    const message = `the request has ${text.length} characters; the limit is ${intentLimits.requestCharacters}`;
    throw new SlipwayError("too_large", message);
  }
  const read = requestTextSchema.safeParse(text);
  if (!read.success) throw new SlipwayError("invalid_request", "the request is empty");
  return read.data;
}

export function openIntent(request: string, draft: IntentDraft): OpenIntent {
  return { status: "open", intent: readIntent({ ...draft, request }) };
}

/** Replaces the parts that the edit names. Fails with `intent_locked` after the lock. */
export function editIntent(record: OpenIntent | LockedIntent, edit: unknown): OpenIntent {
  if (record.status === "locked") throw new SlipwayError("intent_locked", "the intent is locked and cannot change");
  const parts = parse(intentEditSchema, edit, "the edit");
  return { status: "open", intent: readIntent({ ...record.intent, ...parts }) };
}

/** Locking again changes nothing, not even the time. */
export async function lockIntent(record: OpenIntent | LockedIntent, nowMs: number): Promise<LockedIntent> {
  if (record.status === "locked") return record;
  const intent = freeze(structuredClone(readIntent(record.intent)));
  return freeze({ status: "locked", intent, hash: await contentHash(intent), lockedAtMs: nowMs });
}

/** Whether a locked intent is still what was locked. */
export async function isIntact({ intent, hash }: LockedIntent): Promise<boolean> {
  return (await contentHash(intent)) === hash;
}

/** What the schema cannot check. */
export function checkIntent(intent: Omit<Intent, "request">): readonly Finding[] {
  const { criteria, workflows, surface } = intent;
  const ids = [...criteria, ...workflows].map(({ id }) => id);
  const statements = criteria.map(({ statement }) => statement.toLowerCase());
  const findings = [
    ...repeated(ids).map((id) => finding("ids differ", `the id ${id} is used more than once`)),
    ...repeated(statements).map((statement) => finding("criteria differ", `said more than once: ${statement}`)),
  ];
  if (!criteria.some(({ kind }) => kind === "functional")) {
    findings.push(finding("something works", "there is no functional criterion"));
  }
  return surface === undefined ? findings : [...findings, ...checkSurface(surface, intent)];
}

function readIntent(value: unknown): Intent {
  const intent = parse(intentSchema, value, "the intent");
  const findings = checkIntent(intent);
  if (findings.length === 0) return intent;
  throw new SlipwayError("invalid_request", `the intent: ${findings.map(({ message }) => message).join("; ")}`);
}

function parse<T>(schema: z.ZodType<T>, value: unknown, name: string): T {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const problems = parsed.error.issues.map(({ path, message }) => `${path.join(".")}: ${message}`);
  throw new SlipwayError("invalid_request", `${name} is not valid: ${problems.join("; ")}`);
}

function finding(rule: string, message: string): Finding {
  return { rule, message };
}

function freeze<T extends object>(value: T): T {
  for (const field of Object.values(value)) if (typeof field === "object" && field !== null) freeze(field);
  return Object.freeze(value);
}
