import { type AttemptId, type BuildId, coordinatorHeartbeatMs, SlipwayError } from "@slipway/contract";
import type { AttemptRecord, BuildRecord, SandboxRecord } from "../ports/records.ts";
import { type BuildEvent, type LeaseHolder, maxPage, type Store, type StoredBuild, type Turn } from "../ports/store.ts";
import type { Work } from "../ports/work.ts";
import type { BuildAction } from "./actions.ts";
import { applyActions } from "./apply.ts";
import { decide } from "./decide.ts";
import { demandOf, type Fleet } from "./fleet.ts";
import { attemptName, type Intake, takeReports } from "./intake.ts";
import { allItems, itemsOf } from "./items.ts";
import { observe } from "./observe.ts";
import { changedRecords, endedSandboxes, readState, toBuild } from "./records.ts";
import { type BuildState, hasEnded } from "./state.ts";
import { tellDecision } from "./tell.ts";
import { nextWakeMs } from "./watch.ts";

export interface TickParts {
  readonly store: Store;
  readonly work: Work;
  readonly fleet: Fleet;
  readonly clock: { now(): number };
  /** How long a build stays its driver's without a word from it. */
  readonly leaseMs?: number | undefined;
}

/** `over`: the build has ended, or another one drives it. */
export type TickResult = { readonly over: true } | { readonly over: false; readonly waitMs: number };

/** One turn of a build. `bell` is what wakes the driver when something is reported from now on. */
export interface Tick {
  (build: BuildId, by: LeaseHolder, bell: string | null): Promise<TickResult>;
  /** Another one may have driven the build meanwhile: the next turn looks at all that should be under way. */
  forget(build: BuildId): void;
}

/** A missed heartbeat lets another one take over. */
const defaultLeaseMs = 1.25 * coordinatorHeartbeatMs;

export function createTick({ store, work, fleet, clock, leaseMs = defaultLeaseMs }: TickParts): Tick {
  /** Since when this process has driven a build without a break. */
  const attachedAtMs = new Map<BuildId, number>();

  /** The last one of each build that had a turn here: what an earlier one has left ends without a trace. */
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

  /** What should be under way was begun by another process, or by none. */
  const attach = async ({ build, attempts }: StoredBuild, state: BuildState): Promise<number> => {
    const since = attachedAtMs.get(build.id);
    if (since !== undefined) return since;
    await work.reattach(build, allItems(state, idsOf(attempts)));
    const nowMs = clock.now();
    attachedAtMs.set(build.id, nowMs);
    return nowMs;
  };

  /** Nothing of what has ended goes on. Again, when its driver died before all of it was ended. */
  const close = async ({ build }: StoredBuild, by: LeaseHolder): Promise<TickResult> => {
    await work.reattach(build, []);
    await store.leases.release(build.id, by);
    return letGo(build.id, by);
  };

  /** First all else, then what starts: how many slots a build may ask for follows from what it has given up. */
  const decideWithSlots = (observed: BuildState, build: BuildRecord, nowMs: number) => {
    const first = decide({ ...observed, grantedSlots: 0 }, nowMs);
    const settled = applyActions(observed, first, nowMs);
    const slots = hasEnded(settled) ? 0 : fleet.grant(demandOf(settled, build, nowMs));
    const granted = observe(settled, { type: "slots-granted", slots }, nowMs);
    const starts = decide(granted, nowMs);
    return { actions: [...first, ...starts], after: applyActions(granted, starts, nowMs) };
  };

  const turn = async (build: BuildId, by: LeaseHolder): Promise<TickResult> => {
    const stored = await store.builds.state(build);
    const kept = readState(stored);
    if (hasEnded(kept)) return await close(stored, by);
    const sinceMs = await attach(stored, kept);
    const reports = await store.events.read(build, stored.build.appliedThrough, { source: "report", limit: maxPage });
    const { spentMicroUsd } = await store.ledger.balance(build);
    const nowMs = clock.now();
    const before = withSignsOfLife(kept, (task, number) => Math.max(sinceMs, work.heardAtMs(build, task, number) ?? 0));
    const taken = await takeReports(store, stored, before, reports, nowMs);
    const observed = observe(taken.state, { type: "spent", microUsd: spentMicroUsd }, nowMs);
    const { actions, after } = decideWithSlots(observed, stored.build, nowMs);
    if (reports.length > 0 || actions.length > 0) {
      const records = changedRecords({ stored, before, observed, after, places: taken.places, nowMs });
      const ended = hasEnded(after) ? { sandboxes: endedSandboxes(openSandboxes(stored, taken), nowMs) } : {};
      const all = { ...taken.records, ...records, ...ended };
      const decided = { stored, kept, after, actions, reports, records: all, nowMs };
      await store.builds.apply(build, by, toTurn(decided));
      if (hasEnded(after)) return await close(stored, by);
      const items = itemsOf(actions, after, idsOf([...stored.attempts, ...records.attempts]));
      if (items.length > 0) await work.carryOut(stored.build, items);
    }
    if (reports.length === maxPage) return { over: false, waitMs: 0 };
    const wakeMs = Math.min(nextWakeMs(after, nowMs) ?? Number.POSITIVE_INFINITY, nowMs + coordinatorHeartbeatMs);
    return { over: false, waitMs: Math.max(0, wakeMs - nowMs) };
  };

  const tick = async (build: BuildId, by: LeaseHolder, bell: string | null): Promise<TickResult> => {
    if (by.generation < (generations.get(build) ?? 0)) return { over: true };
    generations.set(build, by.generation);
    if ((await store.leases.take(build, by, leaseMs, bell)) === undefined) return letGo(build, by);
    try {
      return await turn(build, by);
    } catch (error) {
      if (error instanceof SlipwayError && error.code === "lease_lost") return letGo(build, by);
      // Whatever of it was begun: the next turn looks at all that should be under way.
      attachedAtMs.delete(build);
      throw error;
    }
  };
  return Object.assign(tick, { forget });
}

interface Decided {
  readonly stored: StoredBuild;
  readonly kept: BuildState;
  readonly after: BuildState;
  readonly actions: readonly BuildAction[];
  readonly reports: readonly BuildEvent[];
  readonly records: Turn["records"] & {};
  readonly nowMs: number;
}

function toTurn({ stored, kept, after, actions, reports, records, nowMs }: Decided): Turn {
  const { turn, lastEvent, endedAt } = stored.build;
  const lastReport = reports.at(-1)?.sequence ?? 0;
  const { budgetMicroUsd } = after.settings;
  return {
    turn,
    // All that was there is read, but for what did not fit the page.
    through: reports.length === maxPage ? lastReport : Math.max(lastEvent, lastReport),
    build: { ...toBuild(after), endedAt: hasEnded(after) ? nowMs : endedAt },
    ...(budgetMicroUsd === kept.settings.budgetMicroUsd ? {} : { budgetMicroUsd }),
    records,
    events: actions.map(tellDecision),
  };
}

/** An attempt is heard by who drives the build; what it said to another one before is not known here. */
function withSignsOfLife(state: BuildState, heardAtMs: (task: string, number: number) => number): BuildState {
  const attempts = state.attempts.map((attempt) => ({
    ...attempt,
    heardAtMs: Math.max(attempt.heardAtMs, heardAtMs(attempt.task, attempt.number)),
  }));
  return { ...state, attempts };
}

function openSandboxes({ sandboxes }: StoredBuild, { records }: Intake): SandboxRecord[] {
  const told = records.sandboxes ?? [];
  return [...sandboxes.filter(({ id }) => !told.some((one) => one.id === id)), ...told];
}

function idsOf(attempts: readonly AttemptRecord[]): ReadonlyMap<string, AttemptId> {
  return new Map(attempts.map(({ id, task, details }) => [attemptName(task, Number(details["number"])), id]));
}
