import {
  type AttemptId,
  type BuildId,
  coordinatorHeartbeatMs,
  defaultLeaseMs,
  SlipwayError,
  tailsOf,
} from "@slipway/contract";
import type { Merging, MergingInput, MergingTurn } from "../ports/merging.ts";
import type { AttemptRecord, BuildRecord, SandboxRecord } from "../ports/records.ts";
import { type Report, readReport } from "../ports/reports.ts";
import {
  type BuildEvent,
  type LeaseHolder,
  maxPage,
  type NewEvent,
  type Store,
  type StoredBuild,
  type Turn,
} from "../ports/store.ts";
import type { Work } from "../ports/work.ts";
import { isTimeKept, withoutAbsence } from "./absence.ts";
import type { BuildAction } from "./actions.ts";
import { applyActions } from "./apply.ts";
import { decide, earlyEndOf, leaveAllBut } from "./decide.ts";
import { demandOf, type Fleet } from "./fleet.ts";
import { attemptName, type Intake, takeReports, takeSettled } from "./intake.ts";
import { allItems, itemsOf } from "./items.ts";
import { observe } from "./observe.ts";
import {
  type Beside,
  changedRecords,
  endedCandidates,
  endedSandboxes,
  readBeside,
  readState,
  toBuild,
} from "./records.ts";
import { type BuildState, hasEnded } from "./state.ts";
import { tellDecision } from "./tell.ts";
import { nextWakeMs } from "./watch.ts";

export interface TickParts {
  readonly store: Store;
  readonly work: Work;
  readonly merging: Merging;
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

export function createTick(parts: TickParts): Tick {
  const { store, work, merging, fleet, clock, leaseMs = defaultLeaseMs } = parts;

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
  const attach = async (stored: StoredBuild, state: BuildState): Promise<number> => {
    const { build, attempts } = stored;
    const since = attachedAtMs.get(build.id);
    if (since !== undefined) return since;
    const merges = merging.underway(readBeside(stored).queue);
    await work.reattach(build, [...allItems(state, idsOf(attempts)), ...merges]);
    const nowMs = clock.now();
    attachedAtMs.set(build.id, nowMs);
    return nowMs;
  };

  /** Nothing of what has ended goes on. Again, when its driver died before all of it was ended. */
  const close = async (build: BuildRecord, { status }: BuildState, by: LeaseHolder): Promise<TickResult> => {
    if (work.close) await work.close(build, { cancelled: status === "cancelled" });
    else await work.reattach(build, []);
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
    if (hasEnded(kept)) return await close(stored.build, kept, by);
    const sinceMs = await attach(stored, kept);
    const events = await store.events.read(build, stored.build.appliedThrough, { source: "report", limit: maxPage });
    const reports = events.flatMap((event) => readReport(event) ?? []);
    const { spentMicroUsd } = await store.ledger.balance(build);
    const nowMs = clock.now();
    const before = withSignsOfLife(kept, (task, number) => Math.max(sinceMs, work.heardAtMs(build, task, number) ?? 0));
    const taken = await takeReports(store, stored, withoutAbsence(before, nowMs), reports, nowMs);
    const beside = readBeside(stored);
    const merges = merging.turn(mergingInput(stored, taken.state, beside, reports, nowMs));
    let settled = taken.state;
    for (const offer of merges.settled) settled = await takeSettled({ store, stored, nowMs }, settled, offer);
    const observed = observe(settled, { type: "spent", microUsd: spentMicroUsd }, nowMs);
    // The books of a build have each move of its main: whoever ends it waits for one that is asked for.
    const waitsFor = earlyEndOf(observed, nowMs) === undefined ? null : merges.moving;
    const { actions, after } =
      waitsFor === null ? decideWithSlots(observed, stored.build, nowMs) : leaveFirst(observed, waitsFor, nowMs);
    const isNews = events.length > 0 || actions.length > 0 || merges.items.length > 0 || merges.events.length > 0;
    if (isNews || isTimeKept(after, nowMs)) {
      const records = changedRecords({ stored, before, observed, after, places: taken.places, nowMs });
      const ended = hasEnded(after) ? endedRecords(stored, taken, merges, nowMs) : {};
      const all = { ...taken.records, ...merges.records, ...records, ...ended };
      const kept = { queue: merges.kept, preview: previewOf(reports) ?? beside.preview };
      const decided = { stored, before, after, kept, actions, events, told: merges.events, records: all, nowMs };
      await store.builds.apply(build, by, toTurn(decided));
      if (hasEnded(after)) return await close(stored.build, after, by);
      const ids = idsOf([...stored.attempts, ...records.attempts]);
      const items = [...itemsOf(actions, { before, after }, ids), ...merges.items];
      if (items.length > 0) await work.carryOut(stored.build, items);
    }
    if (events.length === maxPage) return { over: false, waitMs: 0 };
    const wakes = [waitsFor === null ? nextWakeMs(after, nowMs) : null, merges.wakeMs, nowMs + coordinatorHeartbeatMs];
    const wakeMs = Math.min(...wakes.filter((atMs) => atMs !== null));
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

function leaveFirst(observed: BuildState, moving: string, nowMs: number) {
  const actions = leaveAllBut(moving, observed);
  return { actions, after: applyActions(observed, actions, nowMs) };
}

/** More gates at the same time slow each other down. */
const maxGates = 4;

function mergingInput(
  { build, attempts, candidates }: StoredBuild,
  state: BuildState,
  { queue }: Beside,
  reports: readonly Report[],
  nowMs: number,
): MergingInput {
  const ids = idsOf(attempts);
  const wish = state.status === "paused" && state.wish.kind === "run" ? "pause" : state.wish.kind;
  return {
    build: build.id,
    kept: queue,
    reports,
    candidates,
    nowMs,
    wish: earlyEndOf(state, nowMs) === undefined ? wish : "cancel",
    slots: Math.min(state.settings.slots, maxGates),
    tasks() {
      const tails = tailsOf(state.tasks, ({ estimateMs }) => estimateMs);
      return state.tasks.map(({ id, dependencies }) => ({ id, dependencies, tailMs: tails.get(id) ?? 0 }));
    },
    attempts: state.attempts.flatMap(({ task, number, respawns: respawn }) => {
      const id = ids.get(attemptName(task, number));
      return id === undefined ? [] : [{ id, task, number, respawn }];
    }),
  };
}

function endedRecords(stored: StoredBuild, taken: Intake, { records }: MergingTurn, nowMs: number): Turn["records"] {
  const told = new Set(records.candidates.map(({ id }) => id));
  const open = [...stored.candidates.filter(({ id }) => !told.has(id)), ...records.candidates];
  const [left, settled] = [
    open.filter(({ endedAt }) => endedAt === null),
    open.filter(({ endedAt }) => endedAt !== null),
  ];
  return {
    sandboxes: endedSandboxes(openSandboxes(stored, taken), nowMs),
    candidates: [...settled, ...endedCandidates(left, nowMs)],
  };
}

function previewOf(reports: readonly Report[]): string | undefined {
  const last = reports.findLast((report) => report.type === "preview.ready");
  return last?.data.address;
}

interface Decided {
  readonly stored: StoredBuild;
  readonly before: BuildState;
  readonly after: BuildState;
  readonly kept: Beside;
  readonly actions: readonly BuildAction[];
  readonly events: readonly BuildEvent[];
  /** What the merge queue has to tell. */
  readonly told: readonly NewEvent[];
  readonly records: Turn["records"] & {};
  readonly nowMs: number;
}

function toTurn({ stored, before, after, kept, actions, events, told, records, nowMs }: Decided): Turn {
  const { turn, lastEvent, endedAt } = stored.build;
  const lastReport = events.at(-1)?.sequence ?? 0;
  const { budgetMicroUsd } = after.settings;
  return {
    turn,
    // All that was there is read, but for what did not fit the page.
    through: events.length === maxPage ? lastReport : Math.max(lastEvent, lastReport),
    build: { ...toBuild({ ...after, turnAtMs: nowMs }, kept), endedAt: hasEnded(after) ? nowMs : endedAt },
    ...(budgetMicroUsd === before.settings.budgetMicroUsd ? {} : { budgetMicroUsd }),
    records,
    events: [...told, ...actions.map(tellDecision)],
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
