import { type BuildId, defaultLeaseMs, SlipwayError } from "@slipway/contract";
import type { MergesUnderway, MergeTurn } from "../ports/merging.ts";
import type { BuildRecord } from "../ports/records.ts";
import type { LeaseHolder, Store, StoredBuild } from "../ports/store.ts";
import type { Work } from "../ports/work.ts";
import type { Fleet } from "./fleet.ts";
import { allItems, itemsOf } from "./items.ts";
import { knownFor, learnAll } from "./observe/known.ts";
import { takeIn } from "./observe/observe.ts";
import { idsOf, readBeside, readState } from "./records.ts";
import { type BuildState, hasEnded } from "./state.ts";
import { decideTurn, mergingInput, ownFacts, readNews, toTurn } from "./turn.ts";

export interface TickParts {
  readonly store: Store;
  readonly work: Work;
  readonly mergeTurn: MergeTurn;
  readonly mergesUnderway: MergesUnderway;
  readonly fleet: Fleet;
  readonly clock: { now(): number };
  /** How long a driver that is not heard keeps its build. */
  readonly leaseMs?: number | undefined;
}

/** `over`: the build has ended, or another server drives it. */
export type TickResult = { readonly over: true } | { readonly over: false; readonly waitMs: number };

/** One turn of a build. `bell` wakes the driver when something is reported from now on. */
export interface Tick {
  (build: BuildId, by: LeaseHolder, bell: string | null): Promise<TickResult>;
  /** Another server may have driven the build meanwhile: the next turn checks everything that should be under way. */
  forget(build: BuildId): void;
}

export function createTick(parts: TickParts): Tick {
  const { store, work, mergeTurn, fleet, leaseMs = defaultLeaseMs } = parts;
  /** Since when this process has driven a build without a break. */
  const attachedAtMs = new Map<BuildId, number>();
  /** The last one of each build that had a turn here: a turn of an earlier generation does nothing. */
  const generations = new Map<BuildId, number>();

  const forget = (build: BuildId) => {
    attachedAtMs.delete(build);
    fleet.forget(build);
  };
  const letGo = (build: BuildId, { generation }: LeaseHolder): TickResult => {
    if (generations.get(build) === generation) {
      generations.delete(build);
      forget(build);
    }
    return { over: true };
  };
  const close = async (build: BuildRecord, state: BuildState, by: LeaseHolder): Promise<TickResult> => {
    await closeWork(parts, build, state);
    await store.leases.release(build.id, by);
    return letGo(build.id, by);
  };

  const turn = async (build: BuildId, by: LeaseHolder): Promise<TickResult> => {
    const stored = await store.builds.state(build);
    const kept = readState(stored);
    if (hasEnded(kept)) return await close(stored.build, kept, by);

    const sinceMs = attachedAtMs.get(build) ?? (await attach(parts, stored, kept));
    attachedAtMs.set(build, sinceMs);
    const news = await readNews(parts, stored, kept, sinceMs);
    const { reports, nowMs } = news;

    const taken = takeIn(news.intake, reports, await knownFor(store, stored, reports), nowMs);
    const merges = mergeTurn(mergingInput(news, taken.state));
    const facts = ownFacts(news, merges);
    const observed = takeIn(taken, facts, await knownFor(store, stored, facts), nowMs);
    const decision = decideTurn(news, observed.state, merges, fleet);

    const applied = toTurn(news, observed, merges, decision);
    if (applied !== undefined) {
      await learnAll(store, observed.learnt);
      await store.builds.apply(build, by, applied);
      if (hasEnded(decision.after)) return await close(stored.build, decision.after, by);
      const ids = idsOf([...stored.attempts, ...(applied.records?.attempts ?? [])]);
      const items = [
        ...itemsOf(decision.actions, { before: news.before, after: decision.after }, ids),
        ...merges.items,
      ];
      if (items.length > 0) await work.carryOut(stored.build, items);
    }
    return { over: false, waitMs: news.isMore ? 0 : Math.max(0, decision.wakeMs - nowMs) };
  };

  const tick = async (build: BuildId, by: LeaseHolder, bell: string | null): Promise<TickResult> => {
    if (by.generation < (generations.get(build) ?? 0)) return { over: true };
    generations.set(build, by.generation);
    if ((await store.leases.take(build, by, leaseMs, bell)) === undefined) return letGo(build, by);
    try {
      return await turn(build, by);
    } catch (error) {
      if (error instanceof SlipwayError && error.code === "lease_lost") return letGo(build, by);
      // Some of it may have begun: the next turn checks everything that should be under way.
      attachedAtMs.delete(build);
      throw error;
    }
  };
  return Object.assign(tick, { forget });
}

/** Another process, or none, has begun what should be under way. Returns since when this one drives the build. */
async function attach(
  { work, mergesUnderway, clock }: TickParts,
  stored: StoredBuild,
  kept: BuildState,
): Promise<number> {
  const merges = mergesUnderway(readBeside(stored).queue);
  await work.reattach(stored.build, [...allItems(kept, idsOf(stored.attempts)), ...merges]);
  return clock.now();
}

/** Ends everything of a build that has ended; again, when its driver died before all of it had ended. */
async function closeWork({ work }: TickParts, build: BuildRecord, { status }: BuildState): Promise<void> {
  if (work.close) await work.close(build, { cancelled: status === "cancelled" });
  else await work.reattach(build, []);
}
