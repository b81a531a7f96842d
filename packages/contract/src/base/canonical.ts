import { z } from "zod";

/** A value of JSON, written in one way only: keys in order, no white space, nothing that is undefined. */
export function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map((entry) => canonicalJson(entry ?? null)).join(",")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const fields = Object.entries(value)
    .filter(([, field]) => field !== undefined)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, field]) => `${JSON.stringify(key)}:${canonicalJson(field)}`);
  return `{${fields.join(",")}}`;
}

/** SHA-256 of the canonical form, as `sha256:` and hexadecimal digits. */
export async function contentHash(value: unknown): Promise<ContentHash> {
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(canonicalJson(value)));
  const digits = Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, "0"));
  return `sha256:${digits.join("")}`;
}

export type ContentHash = `sha256:${string}`;

export const contentHashSchema = z.custom<ContentHash>(
  (value) => typeof value === "string" && /^sha256:[0-9a-f]{64}$/.test(value),
);
