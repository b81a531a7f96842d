import {
  type BuildId,
  buildSettingsSchema,
  isOnMain,
  type LockedIntent,
  lockedIntentSchema,
  type OpenIntent,
  openIntentSchema,
  type Partition,
  SlipwayError,
} from "@slipway/contract";
import { isIntact, type Remaining, readReport, type StartingPoint, type Store } from "@slipway/engine";
import { z } from "zod";
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

/** What the stages before have made, as the store has it. */
export interface Made {
  open(build: BuildId): Promise<OpenIntent>;
  locked(build: BuildId): Promise<{ readonly locked: LockedIntent; readonly start: StartingPoint }>;
  /** What the build wants its tasks cut by. */
  partition(build: BuildId): Promise<Partition>;
  tasks(build: BuildId): Promise<Remaining["tasks"]>;
  /** What was seen of criteria and workflows in the last check of the round, by their ids. */
  evidence(build: BuildId, round: number): Promise<ReadonlyMap<string, string>>;
}

type Intents = Pick<Store, "builds">;

export async function readLocked(store: Intents, build: BuildId, signal: AbortSignal): ReturnType<Made["locked"]> {
  const made = await readIntent(store, build, locked, signal);
  if (await isIntact(made.locked)) return made;
  throw new SlipwayError("record_final", `the intent of ${build} is not what was locked`);
}

async function readIntent<T>({ builds }: Intents, build: BuildId, schema: z.ZodType<T>, signal: AbortSignal) {
  const [record] = await whenDatabaseIsThere(() => builds.records(build, "intents"), signal);
  const parsed = schema.safeParse(record?.intent);
  if (parsed.success) return parsed.data;
  throw new SlipwayError("internal", `the intent of ${build} is not as this stage needs it: ${parsed.error.message}`);
}

export function createMade(store: Pick<Store, "builds" | "events">, signal: AbortSignal): Made {
  const { builds, events } = store;
  return {
    open: async (build) => (await readIntent(store, build, drafted, signal)).open,
    locked: (build) => readLocked(store, build, signal),
    async partition(build) {
      const { details } = await whenDatabaseIsThere(() => builds.get(build), signal);
      return buildSettingsSchema.parse(details["settings"] ?? {}).partition;
    },
    async tasks(build) {
      const { tasks } = await whenDatabaseIsThere(() => builds.state(build), signal);
      const merged = new Set(tasks.filter(({ status }) => isOnMain(status)).map(({ id }) => id));
      const plans = await whenDatabaseIsThere(() => builds.records(build, "plans"), signal);
      return plans.flatMap((plan) => plan.tasks).map(({ id, title }) => ({ id, title, merged: merged.has(id) }));
    },
    async evidence(build, round) {
      const check = await whenDatabaseIsThere(() => events.find(build, `satisfaction.checked:${round}`), signal);
      const seen = check && readReport(check);
      return new Map(seen?.type === "satisfaction.checked" ? seen.data.evidence.map(({ id, text }) => [id, text]) : []);
    },
  };
}
