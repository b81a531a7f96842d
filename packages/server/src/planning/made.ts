import {
  type BuildId,
  type LockedIntent,
  lockedIntentSchema,
  type OpenIntent,
  openIntentSchema,
  SlipwayError,
} from "@slipway/contract";
import { isIntact, type Remaining, type StartingPoint, type Store } from "@slipway/engine";
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
  tasks(build: BuildId): Promise<Remaining["tasks"]>;
}

export function createMade({ builds }: Pick<Store, "builds">, signal: AbortSignal): Made {
  const read = async <T>(build: BuildId, schema: z.ZodType<T>): Promise<T> => {
    const [record] = await whenDatabaseIsThere(() => builds.records(build, "intents"), signal);
    const parsed = schema.safeParse(record?.intent);
    if (parsed.success) return parsed.data;
    throw new SlipwayError("internal", `the intent of ${build} is not as this stage needs it: ${parsed.error.message}`);
  };
  return {
    open: async (build) => (await read(build, drafted)).open,
    async locked(build) {
      const made = await read(build, locked);
      if (await isIntact(made.locked)) return made;
      throw new SlipwayError("record_final", `the intent of ${build} is not what was locked`);
    },
    async tasks(build) {
      const { tasks } = await whenDatabaseIsThere(() => builds.state(build), signal);
      const merged = new Set(tasks.filter(({ status }) => status === "merged").map(({ id }) => id));
      const plans = await whenDatabaseIsThere(() => builds.records(build, "plans"), signal);
      return plans.flatMap((plan) => plan.tasks).map(({ id, title }) => ({ id, title, merged: merged.has(id) }));
    },
  };
}
