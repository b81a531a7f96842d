import { type RunnerEvent, runChannel, runnerEventSchema, SlipwayError } from "@slipway/contract";
import type { z } from "zod";

/** The number, the time and the frame of a batch around an event. */
const frameBytes = 1024;
const shortCharacters = 512;
const mark = "… [cut]";

/** Cuts what is too long for the host, and marks the cut. Fails with `event_rejected` for other faults. */
export function fit(event: RunnerEvent): RunnerEvent {
  const fitted = parse(event);
  if (byteLength(fitted) <= runChannel.maxBodyBytes - frameBytes) return fitted;
  return parse(shorten(fitted));
}

/** A list that is too long hides faults in its entries, which may then need a cut of their own. */
function parse(event: unknown, cuts = 2): RunnerEvent {
  const result = runnerEventSchema.safeParse(event);
  if (result.success) return result.data;
  const { issues } = result.error;
  if (cuts > 0) return parse(issues.reduce(cut, structuredClone(event)), cuts - 1);
  const { path, message } = issues[0] ?? { path: [], message: "no event" };
  throw new SlipwayError("event_rejected", `${path.join(".")}: ${message}`);
}

/** Cuts the value that the issue is about, if the issue is a length. */
function cut(event: unknown, issue: z.core.$ZodIssue): unknown {
  if (issue.code !== "too_big") return event;
  const key = issue.path.at(-1);
  const parent = issue.path.slice(0, -1).reduce<unknown>((value, step) => child(value, step), event);
  if (key === undefined || typeof parent !== "object" || parent === null) return event;
  const value = child(parent, key);
  const maximum = Number(issue.maximum);
  if (typeof value === "string") Reflect.set(parent, key, cutText(value, maximum));
  if (Array.isArray(value)) Reflect.set(parent, key, value.slice(0, maximum));
  return event;
}

function child(value: unknown, key: PropertyKey): unknown {
  return typeof value === "object" && value !== null ? Reflect.get(value, key) : undefined;
}

function cutText(text: string, maximum: number): string {
  return text.length <= maximum ? text : text.slice(0, Math.max(0, maximum - mark.length)) + mark;
}

/** Cuts every text short: fields within their limits can be too long together. */
function shorten(value: unknown): unknown {
  if (typeof value === "string") return cutText(value, shortCharacters);
  if (Array.isArray(value)) return value.map(shorten);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, shorten(inner)]));
}

function byteLength(event: RunnerEvent): number {
  return Buffer.byteLength(JSON.stringify(event));
}
