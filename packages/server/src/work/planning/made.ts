import { type BuildId, isOnMain, lockedIntentSchema, openIntentSchema, SlipwayError } from "@slipway/contract";
import { isIntact, readReport, type StartingPoint, type Store } from "@slipway/engine";
import { z } from "zod";
import { settingsOf } from "../build-record.ts";
import { whenDatabaseIsThere } from "./patience.ts";

const repository = z.strictObject({ files: z.array(z.string()), notes: z.string() });
const problem = z.strictObject({ title: z.string(), evidence: z.string(), files: z.array(z.string()) });
const startSchema: z.ZodType<StartingPoint> = z.discriminatedUnion("mode", [
  z.strictObject({ mode: z.literal("new") }),
  z.strictObject({ mode: z.literal("feature"), repository }),
  z.strictObject({ mode: z.literal("fix"), repository, diagnosis: z.strictObject({ problems: z.array(problem) }) }),
]);
const drafted = z.object({ open: openIntentSchema, start: startSchema });
const locked = z.object({ locked: lockedIntentSchema, start: startSchema });

/** What earlier stages have made, from the store. */
export type Made = ReturnType<typeof createMade>;

type Intents = Pick<Store, "builds">;

export async function readLocked(store: Intents, build: BuildId, signal: AbortSignal) {
  const made = await readIntent(store, build, locked, signal);
  if (await isIntact(made.locked)) return made;
  throw new SlipwayError("record_final", `the intent of ${build} has changed since it was locked`);
}

async function readIntent<T>({ builds }: Intents, build: BuildId, schema: z.ZodType<T>, signal: AbortSignal) {
  const [record] = await whenDatabaseIsThere(() => builds.records(build, "intents"), signal);
  const parsed = schema.safeParse(record?.intent);
  if (parsed.success) return parsed.data;
  throw new SlipwayError("internal", `the intent of ${build} is not valid for this stage: ${parsed.error.message}`);
}

export function createMade(store: Pick<Store, "builds" | "events">, signal: AbortSignal) {
  const { builds, events } = store;
  return {
    open: async (build: BuildId) => (await readIntent(store, build, drafted, signal)).open,
    locked: (build: BuildId) => readLocked(store, build, signal),
    /** How the build wants its tasks cut. */
    async partition(build: BuildId) {
      return settingsOf(await whenDatabaseIsThere(() => builds.get(build), signal)).partition;
    },
    async tasks(build: BuildId) {
      const { tasks } = await whenDatabaseIsThere(() => builds.state(build), signal);
      const merged = new Set(tasks.filter(({ status }) => isOnMain(status)).map(({ id }) => id));
      const plans = await whenDatabaseIsThere(() => builds.records(build, "plans"), signal);
      return plans.flatMap((plan) => plan.tasks).map(({ id, title }) => ({ id, title, merged: merged.has(id) }));
    },
    /** The evidence for criteria and workflows in the last check of the round, by their ids. */
    async evidence(build: BuildId, round: number): Promise<ReadonlyMap<string, string>> {
      const check = await whenDatabaseIsThere(() => events.find(build, `satisfaction.checked:${round}`), signal);
      const seen = check && readReport(check);
      return new Map(seen?.type === "satisfaction.checked" ? seen.data.evidence.map(({ id, text }) => [id, text]) : []);
    },
  };
}
