import { z } from "zod";

/** Prefixes of every id that crosses a border. The prefix is the brand: ids of two kinds never mix. */
const prefixes = ["sbx", "exc", "snp", "evt", "run", "bld", "att", "cnd"] as const;

type IdPrefix = (typeof prefixes)[number];
type Id<P extends IdPrefix> = string & { readonly prefix: P };

export type SandboxId = Id<"sbx">;
export type ExecId = Id<"exc">;
export type SnapshotId = Id<"snp">;
export type RunId = Id<"run">;
export type BuildId = Id<"bld">;
export type AttemptId = Id<"att">;
export type CandidateId = Id<"cnd">;

const alphabet = "0123456789abcdefghjkmnpqrstvwxyz";
const timeChars = 9;
const randomChars = 11;

/** A new id: prefix, milliseconds since 1970, randomness. Ids made later sort later. */
export function newId<P extends IdPrefix>(prefix: P, nowMs: number = Date.now()): Id<P> {
  let time = "";
  for (let rest = nowMs, i = 0; i < timeChars; i++) {
    time = alphabet.charAt(rest % 32) + time;
    rest = Math.floor(rest / 32);
  }
  let random = "";
  for (const byte of crypto.getRandomValues(new Uint8Array(randomChars))) random += alphabet.charAt(byte % 32);
  return `${prefix}_${time}${random}` as Id<P>;
}

function idSchema<P extends IdPrefix>(prefix: P) {
  const pattern = new RegExp(`^${prefix}_[${alphabet}]{${timeChars + randomChars}}$`);
  return z.custom<Id<P>>((value) => typeof value === "string" && pattern.test(value), {
    message: `expected an id such as ${prefix}_${"0".repeat(timeChars + randomChars)}`,
  });
}

export const sandboxIdSchema = idSchema("sbx");
export const execIdSchema = idSchema("exc");
export const snapshotIdSchema = idSchema("snp");
export const runIdSchema = idSchema("run");
export const buildIdSchema = idSchema("bld");
export const attemptIdSchema = idSchema("att");
export const candidateIdSchema = idSchema("cnd");

/** Names of criteria, workflows, tasks, features and components: they end up in file names, branches and prompts. */
export const slugSchema = z
  .string()
  .max(64)
  .regex(/^[a-z0-9]+(-[a-z0-9]+)*$/, "expected a name such as sign-in");
