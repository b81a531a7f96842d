import { randomBytes } from "node:crypto";

const base62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const base32 = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

export function newModalId(prefix: "ap" | "im" | "st" | "vo" | "ta" | "en" | "sn" | "ak" | "as"): string {
  return `${prefix}-${draw(22, base62)}`;
}

/** The client takes exactly 22 characters of base 62 for a sandbox of the first generation. */
export function newSandboxId(generation: "v1" | "v2"): string {
  return generation === "v1" ? `sb-${draw(22, base62)}` : `sb-${draw(26, base32)}`;
}

function draw(length: number, alphabet: string): string {
  return Array.from(randomBytes(length), (byte) => alphabet[byte % alphabet.length]).join("");
}
