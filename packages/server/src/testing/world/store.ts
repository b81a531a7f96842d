import { join } from "node:path";
import {
  type BuildId,
  type BuildMode,
  type BuildSettingsInput,
  buildSettingsSchema,
  type Hold,
  newId,
} from "@slipway/contract";
import { newBuildDetails, type Turn, type WorkingBuild } from "@slipway/engine";
import { openDatabase, openStore } from "@slipway/store";
import type { Place } from "./place.ts";

export interface NewBuild extends BuildSettingsInput {
  readonly id?: BuildId;
  /** Left out: one of its own. */
  readonly project?: string;
  readonly mode?: BuildMode;
  readonly request?: string;
  readonly hold?: Hold;
}

/** What drives a build whose lease a test has. */
export const driver = { holder: "server-1", generation: 1 };

export type StorePart = Awaited<ReturnType<typeof openStorePart>>;

/** A store: a file of its own, unless an address is given, or a server of the world has one. */
export async function openStorePart(
  { url }: { readonly url?: string },
  { directory, clock, ...server }: Place & { readonly databaseUrl?: string },
  held: AsyncDisposableStack,
) {
  const databaseUrl = url ?? server.databaseUrl ?? `file:${join(directory, "slipway.db")}`;
  const database = held.use(openDatabase({ url: databaseUrl }));
  const store = await openStore(database, clock, clock);
  return {
    databaseUrl,
    database,
    store,
    async create(given: NewBuild = {}): Promise<WorkingBuild> {
      const {
        id = newId("bld"),
        project = "shop",
        mode = "new",
        request = "A packing list",
        hold,
        ...settings
      } = given;
      const accepted = buildSettingsSchema.parse(settings);
      const build = { id, account: "ada", project, mode, request };
      const details = newBuildDetails(accepted, hold ?? "none", clock.now());
      await store.builds.create({ ...build, details }, accepted.budgetMicroUsd, { type: "build.created" });
      return build;
    },
    /** From now on `driver` drives the build. */
    lead: ({ id }: { readonly id: BuildId }) => store.leases.take(id, driver, 3_600_000),
    /** What a turn of a build changes that `driver` drives, once it has taken in all that was reported. */
    async apply({ id }: { readonly id: BuildId }, change: Partial<Turn>): Promise<void> {
      const { turn, lastEvent } = await store.builds.get(id);
      await store.builds.apply(id, driver, { turn, through: lastEvent, events: [], ...change });
    },
    // biome-ignore lint/suspicious/noExplicitAny: what a report says is looked at by who knows it
    async reportsOf(build: BuildId, type: string): Promise<Record<string, any>[]> {
      const events = await store.events.read(build, 0, { source: "report" });
      return events.filter((event) => event.type === type).map(({ data }) => data);
    },
  };
}
