import { setTimeout as delay } from "node:timers/promises";
import { type BuildId, hasCode } from "@slipway/contract";
import {
  type GateWork,
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
import type { Repositories } from "../repository/repositories.ts";
import { giveUpMove, moveMain } from "./move-main.ts";
import { checkSatisfaction, type Satisfaction } from "./satisfaction.ts";
import { testMerge } from "./test-merge.ts";

export interface MergingParts {
  readonly store: Pick<Store, "builds">;
  readonly repositories: Repositories;
  readonly gates: Gates & Satisfaction;
  readonly preview: {
    /** Shows this commit of main from now on; nobody waits for it. */
    follow(build: WorkingBuild, commit: string): void;
    close(build: BuildId): Promise<void>;
  };
  readonly report: (build: BuildId, events: readonly NewEvent[]) => Promise<void>;
  /** Attempts that are under way learn of a new main. */
  readonly onMain: (build: WorkingBuild, commit: string) => Promise<void>;
  readonly clock: { now(): number };
  readonly warn: (message: string) => void;
}

interface Underway {
  readonly build: BuildId;
  readonly controller: AbortController;
  readonly ended: Promise<unknown>;
}

/** More test merges of a build at once only wait for each other's disk. */
const maxMerges = 2;
const firstWaitMs = 1000;
const lastWaitMs = 60_000;

/** What the merge queue asks for: test merges, runs of gates, and moves of main; and whether main is what was wanted. */
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

  /** From the item to its report. Whoever has given up is told nothing. */
  const carry = async (build: WorkingBuild, item: ItemFor<"merging">, signal: AbortSignal): Promise<void> => {
    const told = await outcomeOf(build, item, signal);
    if (told === undefined) return;
    await whenDatabaseIsThere(() => report(build.id, [told]), signal);
    if (item.type !== "merge") return;
    const main = await findMain(build.id);
    if (main === undefined) return;
    preview.follow(build, main);
    // Attempts may be long in taking it in, and nothing waits for that.
    parts.onMain(build, main).catch((error: Error) => warn(`${build.id}: ${error.message}`));
  };

  /** Nobody asks again for what the queue waits for: what fails of ours is tried until it is done, or not wanted any more. */
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
      case "gate-run":
        return await runGate(build, item, signal);
      case "merge":
        if (await repositories.has(build.id, item.from)) return await moveMain(repository, item, signal);
        return await giveUpMove(parts.store, build.id, item);
      case "check-satisfaction":
        return await checkSatisfaction({ ...parts, repository }, build, item, signal);
      case "cancel-run":
        return undefined;
    }
  };

  /** Undefined: there is none yet, or none any more. */
  const findMain = async (build: BuildId): Promise<string | undefined> => {
    const repository = await repositories.of(build);
    return await repository.main().catch((error) => {
      if (hasCode(error, "commit_not_found")) return undefined;
      throw error;
    });
  };

  const runGate = async (build: WorkingBuild, item: GateWork, signal: AbortSignal): Promise<NewEvent> => {
    const { run, task, gate } = item;
    const end = await gates.run(build, item, signal);
    return toReport("gate.ended", `gate.ended:${run}`, { run, ...end, task, gate });
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
      const main = await findMain(build.id);
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

/** A run is cancelled by its number. */
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
