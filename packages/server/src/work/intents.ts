import { type BuildId, lockedIntentSchema, openIntentSchema, SlipwayError } from "@slipway/contract";
import { isIntact, type StartingPoint, type Store } from "@slipway/engine";
import { z } from "zod";
import { whenDatabaseIsThere } from "./planning/patience.ts";

const page = z.strictObject({ path: z.string(), leadsTo: z.string().nullable(), shows: z.string() });
/** Builds that were drafted earlier have neither routes nor pages. */
const repository = z.strictObject({
  files: z.array(z.string()),
  notes: z.string(),
  routes: z.array(z.string()).default([]),
  pages: z.array(page).default([]),
  unseen: z.string().nullable().default(null),
});
const problem = z.strictObject({ title: z.string(), evidence: z.string(), files: z.array(z.string()) });
const startSchema: z.ZodType<StartingPoint> = z.discriminatedUnion("mode", [
  z.strictObject({ mode: z.literal("new") }),
  z.strictObject({ mode: z.literal("feature"), repository }),
  z.strictObject({ mode: z.literal("fix"), repository, diagnosis: z.strictObject({ problems: z.array(problem) }) }),
]);
export const drafted = z.object({ open: openIntentSchema, start: startSchema });
const locked = z.object({ locked: lockedIntentSchema, start: startSchema });

type Intents = Pick<Store, "builds">;

export async function readLocked(store: Intents, build: BuildId, signal: AbortSignal) {
  const made = await readIntent(store, build, locked, signal);
  if (await isIntact(made.locked)) return made;
  throw new SlipwayError("record_final", `the intent of ${build} has changed since it was locked`);
}

export async function readIntent<T>({ builds }: Intents, build: BuildId, schema: z.ZodType<T>, signal: AbortSignal) {
  const [record] = await whenDatabaseIsThere(() => builds.records(build, "intents"), signal);
  const parsed = schema.safeParse(record?.intent);
  if (parsed.success) return parsed.data;
  throw new SlipwayError("internal", `the intent of ${build} is not valid for this stage: ${parsed.error.message}`);
}
