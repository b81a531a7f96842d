import { type BuildId, hasCode } from "@slipway/contract";
import type { Store } from "@slipway/engine";
import type { BuildRepository } from "../repository/repository.ts";

/**
 * Lets go of the branches of a build that has ended. Work that is not on main stays for a person to look at; what was on its
 * way when a process died is in no record, and nobody would find it.
 */
export async function dropBranches(
  { builds }: Pick<Store, "builds">,
  repository: Pick<BuildRepository, "main" | "candidates" | "discard">,
  build: BuildId,
): Promise<void> {
  const merged = new Set((await builds.records(build, "merges")).map(({ task }) => task));
  const all = await builds.records(build, "candidates");
  const open = new Set(all.filter(({ task }) => !merged.has(task)).map(({ id }) => id));
  try {
    await repository.main();
  } catch (error) {
    if (hasCode(error, "commit_not_found")) return;
    throw error;
  }
  for (const id of (await repository.candidates()).keys()) if (!open.has(id)) await repository.discard(id);
}
