import { type BuildId, isOnMain } from "@slipway/contract";
import { type DisputeWork, readReport, type Store } from "@slipway/engine";
import { readAll } from "../all-records.ts";
import { settingsOf } from "../build-record.ts";
import { readDemands } from "../gates/demands.ts";
import { drafted, readIntent, readLocked } from "../intents.ts";
import { whenDatabaseIsThere } from "./patience.ts";

/** What earlier stages have made, from the store. */
export type Made = ReturnType<typeof createMade>;

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
    /** The locked intent and the checks in force, by what they prove. */
    async checks(build: BuildId) {
      const { locked } = await readLocked(store, build, signal);
      const { demands } = await whenDatabaseIsThere(() => readDemands(store, build, signal), signal);
      return { locked, checks: new Map(demands.map(({ id, checks }) => [id, checks])) };
    },
    /** The commit of main before any task was merged that serves the criterion in dispute. */
    async without(build: BuildId, { at, without }: Pick<DisputeWork, "at" | "without">) {
      const { demands } = await whenDatabaseIsThere(() => readDemands(store, build, signal), signal);
      const tasks = demands.find(({ id }) => id === at.criterion)?.tasks ?? new Set();
      const merges = await whenDatabaseIsThere(() => readAll(store, build, "merges"), signal);
      const moves = merges.filter(({ task, commit, parent }) => tasks.has(task) && commit !== parent);
      return moves.toSorted((a, b) => a.position - b.position)[0]?.parent ?? without;
    },
    /** What was found where these candidates failed a criterion, oldest first. */
    async failures(build: BuildId, { candidates, at }: Pick<DisputeWork, "candidates" | "at">) {
      const results = await whenDatabaseIsThere(() => readAll(store, build, "gateResults"), signal);
      return candidates.flatMap((candidate) => {
        const failed = results.findLast(
          (one) =>
            one.candidate === candidate &&
            one.parts.some(({ name, failedAt }) => name === at.criterion && failedAt !== null),
        );
        return failed?.findings.map(({ text }) => text).slice(0, 1) ?? [];
      });
    },
    /** The evidence for criteria and workflows in the last check of the round, by their ids. */
    async evidence(build: BuildId, round: number): Promise<ReadonlyMap<string, string>> {
      const check = await whenDatabaseIsThere(() => events.find(build, `satisfaction.checked:${round}`), signal);
      const seen = check && readReport(check);
      return new Map(seen?.type === "satisfaction.checked" ? seen.data.evidence.map(({ id, text }) => [id, text]) : []);
    },
  };
}
