import { setTimeout as delay } from "node:timers/promises";
import type { BuildId } from "@slipway/contract";
import {
  type ItemFor,
  itemsFor,
  type NewEvent,
  type Store,
  report as toReport,
  type Work,
  type WorkingBuild,
} from "@slipway/engine";
import type { Gates } from "../gates/gates.ts";
import { whenDatabaseIsThere } from "../planning/patience.ts";
import { createTurns } from "../planning/turns.ts";
import { findMain, type Repositories } from "../repository/repositories.ts";
import { giveUpMove, moveMain } from "./move-main.ts";
import { testMerge } from "./test-merge.ts";

export interface MergingParts {
  readonly store: Pick<Store, "builds">;
  readonly repositories: Repositories;
  readonly gates: Pick<Gates, "run"> & {
    /** Checks each criterion and workflow on a commit. */
    satisfaction(
      build: WorkingBuild,
      commit: string,
      signal: AbortSignal,
    ): Promise<readonly { readonly id: string; readonly satisfied: boolean; readonly text: string }[]>;
  };
  readonly preview: {
    /** Shows this commit of main from now on. Returns at once. */
    follow(build: WorkingBuild, commit: string): void;
    close(build: BuildId): Promise<void>;
  };
  readonly report: (build: BuildId, events: readonly NewEvent[]) => Promise<void>;
  /** Tells working attempts of a new main. */
  readonly onMain: (build: WorkingBuild, commit: string) => Promise<void>;
  readonly clock: { now(): number };
  readonly warn: (message: string) => void;
}

interface Underway {
  readonly build: BuildId;
  readonly controller: AbortController;
  readonly ended: Promise<unknown>;
}

/** More concurrent test merges of a build only compete for the disk. */
const maxMerges = 2;
const firstWaitMs = 1000;
const lastWaitMs = 60_000;

/** Does what the merge queue asks for: test merges, gate runs, moves of main and checks of satisfaction. */
export function createMergeWork(
  parts: MergingParts,
): Required<Omit<Work, "heardAtMs" | "canCarryOn">> & AsyncDisposable {
  const { repositories, gates, preview, report, warn } = parts;
  const underway = new Map<string, Underway>();
  const turns = new Map<BuildId, ReturnType<typeof createTurns>>();
  const inTurnOf = (build: BuildId) => {
    const known = turns.get(build) ?? createTurns(maxMerges);
    turns.set(build, known);
    return known;
  };

  /** Does the item and reports its outcome. Reports nothing once aborted. */
  const carry = async (build: WorkingBuild, item: ItemFor<"merging">, signal: AbortSignal): Promise<void> => {
    const told = await outcomeOf(build, item, signal);
    if (told === undefined) return;
    await whenDatabaseIsThere(() => report(build.id, [told]), signal);
    if (item.type !== "merge") return;
    const main = await findMain(await repositories.of(build.id));
    if (main === undefined) return;
    preview.follow(build, main);
    // Not awaited: attempts may take long to hear it.
    parts.onMain(build, main).catch((error: Error) => warn(`${build.id}: ${error.message}`));
  };

  /** Retries our own failures until the item is done or aborted: the queue does not ask again. */
  const carryOn = async (build: WorkingBuild, item: ItemFor<"merging">, signal: AbortSignal): Promise<void> => {
    for (let waitMs = firstWaitMs; !signal.aborted; waitMs = Math.min(2 * waitMs, lastWaitMs)) {
      try {
        return await carry(build, item, signal);
      } catch (error) {
        if (signal.aborted) return;
        warn(`${build.id}, ${item.type}: ${(error as Error).message}`);
        await delay(waitMs, undefined, { signal }).catch(() => {});
      }
    }
  };

  const outcomeOf = async (
    build: WorkingBuild,
    item: ItemFor<"merging">,
    signal: AbortSignal,
  ): Promise<NewEvent | undefined> => {
    const repository = await repositories.of(build.id);
    switch (item.type) {
      case "test-merge":
        return await inTurnOf(build.id)(() => testMerge({ ...parts, repository }, build, item, signal));
      case "gate-run": {
        const { run, task, gate } = item;
        const end = await gates.run(build, item, signal);
        return toReport("gate.ended", `gate.ended:${run}`, { run, ...end, task, gate });
      }
      case "merge":
        if (await repositories.has(build.id, item.from)) return await moveMain(repository, item, signal);
        return await giveUpMove(parts.store, build.id, item);
      case "check-satisfaction":
        return await checkSatisfaction(build, item.round, await repository.main(), signal);
      case "cancel-run":
        return undefined;
    }
  };

  const checkSatisfaction = async (build: WorkingBuild, round: number, main: string, signal: AbortSignal) => {
    const evidence = await gates.satisfaction(build, main, signal);
    const unsatisfied = evidence.filter(({ satisfied }) => !satisfied).map(({ id }) => id);
    const told = { round, unsatisfied, evidence: [...evidence] };
    return toReport("satisfaction.checked", `satisfaction.checked:${round}`, told);
  };

  const begin = (build: WorkingBuild, item: ItemFor<"merging">) => {
    const name = nameOf(build.id, item);
    if (item.type === "cancel-run") underway.get(name)?.controller.abort();
    if (item.type === "cancel-run" || underway.has(name)) return;
    const controller = new AbortController();
    const ended = carryOn(build, item, controller.signal).finally(() => underway.delete(name));
    underway.set(name, { build: build.id, controller, ended });
  };

  const stop = async (isLeft: (name: string, one: Underway) => boolean) => {
    const left = [...underway].filter(([name, one]) => isLeft(name, one));
    for (const [, { controller }] of left) controller.abort();
    await Promise.all(left.map(([, { ended }]) => ended));
  };

  return {
    async carryOut(build, asked) {
      for (const item of itemsFor("merging", asked)) begin(build, item);
    },

    async reattach(build, all) {
      const items = itemsFor("merging", all);
      const wanted = new Set(items.map((item) => nameOf(build.id, item)));
      await stop((name, one) => one.build === build.id && !wanted.has(name));
      for (const item of items) begin(build, item);
      const main = await findMain(await repositories.of(build.id));
      if (main !== undefined) preview.follow(build, main);
    },

    async close({ id }, { cancelled }) {
      await stop((_, { build }) => build === id);
      turns.delete(id);
      if (cancelled) await preview.close(id);
    },

    async [Symbol.asyncDispose]() {
      await stop(() => true);
    },
  };
}

/** Names a gate run by its number, so that it can be cancelled. */
function nameOf(build: BuildId, item: ItemFor<"merging">): string {
  switch (item.type) {
    case "gate-run":
    case "cancel-run":
      return `${build} run ${item.run}`;
    case "test-merge":
      return `${build} test ${item.base} ${item.commit}`;
    case "merge":
      return `${build} merge ${item.candidate} ${item.to}`;
    case "check-satisfaction":
      return `${build} satisfaction ${item.round}`;
  }
}
