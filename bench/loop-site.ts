import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type BuildId, type BuildSettingsInput, buildSettingsSchema, newId } from "@slipway/contract";
import { newBuildDetails, type Store } from "@slipway/engine";
import { openDatabase, openStore } from "@slipway/store";

/** A directory with a database, for as long as a figure is measured. */
export async function openSite() {
  await using parts = new AsyncDisposableStack();
  const directory = await mkdtemp(join(tmpdir(), "slipway-loop-"));
  parts.defer(() => rm(directory, { recursive: true, force: true, maxRetries: 10 }));
  const databaseUrl = `file:${join(directory, "slipway.db")}`;
  const store = await openStore(parts.use(openDatabase({ url: databaseUrl })), Date);
  const held = parts.move();
  return { directory, databaseUrl, store, [Symbol.asyncDispose]: () => held.disposeAsync() };
}

export async function createBuild(store: Store, given: BuildSettingsInput): Promise<BuildId> {
  const settings = buildSettingsSchema.parse({ budgetMicroUsd: 1e12, ...given });
  const id = newId("bld");
  const details = newBuildDetails(settings, "none", Date.now());
  const build = { id, account: "bench", project: id, mode: "new", request: "a shop", details } as const;
  await store.builds.create(build, settings.budgetMicroUsd, { type: "build.created" });
  return id;
}
