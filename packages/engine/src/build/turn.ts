import { coordinatorHeartbeatMs, tailsOf } from "@slipway/contract";
import type { MergingInput, MergingTurn } from "../ports/merging.ts";
import { type Report, readReport } from "../ports/reports.ts";
import { type BuildEvent, maxPage, type Store, type StoredBuild, type Turn } from "../ports/store.ts";
import type { Work } from "../ports/work.ts";
import { isTimeKept, withoutAbsence } from "./absence.ts";
import { type BuildAction, tellDecision } from "./actions.ts";
import { applyActions } from "./apply.ts";
import { decide, earlyEndOf, leaveAllBut } from "./decide.ts";
import { demandOf, type Fleet } from "./fleet.ts";
import type { Fact } from "./observe/facts.ts";
import type { Intake } from "./observe/observe.ts";
import { type Beside, changedRecords, idsOf, readBeside, toBuild } from "./records.ts";
import { attemptName, type BuildState, hasEnded } from "./state.ts";
import { nextWakeMs } from "./watch.ts";

/** What a turn begins with. */
export interface News {
  readonly stored: StoredBuild;
  readonly beside: Beside;
  /** As it was kept, with signs of life since then. */
  readonly before: BuildState;
  /** Without the time in which nobody drove the build. */
  readonly intake: Intake;
  readonly events: readonly BuildEvent[];
  readonly reports: readonly Report[];
  /** There may be more than one turn takes in. */
  readonly isMore: boolean;
  readonly spentMicroUsd: number;
  readonly nowMs: number;
}

/** Reads what was reported since the last turn. `sinceMs`: since when this process hears the build's attempts. */
export async function readNews(
  { store, work, clock }: Reading,
  stored: StoredBuild,
  kept: BuildState,
  sinceMs: number,
): Promise<News> {
  const { id, appliedThrough } = stored.build;
  const events = await store.events.read(id, appliedThrough, { source: "report", limit: maxPage });
  const { spentMicroUsd } = await store.ledger.balance(id);
  const nowMs = clock.now();
  const attempts = kept.attempts.map((attempt) => {
    const heardAtMs = work.heardAtMs(id, attempt.task, attempt.number) ?? 0;
    return { ...attempt, heardAtMs: Math.max(attempt.heardAtMs, sinceMs, heardAtMs) };
  });
  const before = { ...kept, attempts };
  return {
    stored,
    beside: readBeside(stored),
    before,
    intake: { state: withoutAbsence(before, nowMs), records: {}, places: new Map(), learnt: [] },
    events,
    reports: events.flatMap((event) => readReport(event) ?? []),
    isMore: events.length === maxPage,
    spentMicroUsd,
    nowMs,
  };
}

interface Reading {
  readonly store: Pick<Store, "events" | "ledger">;
  readonly work: Pick<Work, "heardAtMs">;
  readonly clock: { now(): number };
}

/** More gates at the same time slow each other down. */
const maxGates = 4;

export function mergingInput({ stored, beside, reports, nowMs }: News, state: BuildState): MergingInput {
  const ids = idsOf(stored.attempts);
  const wish = state.status === "paused" && state.wish.kind === "run" ? "pause" : state.wish.kind;
  return {
    build: stored.build.id,
    kept: beside.queue,
    reports,
    candidates: stored.candidates,
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

/** What the turn itself has found out. */
export function ownFacts({ spentMicroUsd }: News, { settled }: MergingTurn): readonly Fact[] {
  return [
    ...settled.map((data) => ({ type: "offer.settled", data }) as const),
    { type: "ledger.spent", data: { microUsd: spentMicroUsd } },
  ];
}

export interface Decision {
  readonly actions: readonly BuildAction[];
  readonly after: BuildState;
  readonly wakeMs: number;
}

export function decideTurn({ stored, nowMs }: News, observed: BuildState, merges: MergingTurn, fleet: Fleet): Decision {
  const heartbeatMs = nowMs + coordinatorHeartbeatMs;
  const wakeMs = Math.min(merges.wakeMs ?? heartbeatMs, heartbeatMs);
  // The books of a build have each move of its main: an early end waits for one that is asked for.
  if (merges.moving !== null && earlyEndOf(observed, nowMs) !== undefined) {
    const actions = leaveAllBut(merges.moving, observed);
    return { actions, after: applyActions(observed, actions, nowMs), wakeMs };
  }
  // How many slots a build may ask for follows from what it gives up: what starts is decided last.
  const first = decide({ ...observed, grantedSlots: 0 }, nowMs);
  const settled = applyActions(observed, first, nowMs);
  const grantedSlots = hasEnded(settled) ? 0 : fleet.grant(demandOf(settled, stored.build, nowMs));
  const granted = { ...settled, grantedSlots };
  const starts = decide(granted, nowMs);
  const after = applyActions(granted, starts, nowMs);
  return { actions: [...first, ...starts], after, wakeMs: Math.min(nextWakeMs(after, nowMs) ?? wakeMs, wakeMs) };
}

/** Everything that the turn writes. Undefined: there is nothing new. */
export function toTurn(news: News, observed: Intake, merges: MergingTurn, decision: Decision): Turn | undefined {
  const { stored, beside, before, events, nowMs, isMore } = news;
  const { actions, after } = decision;
  const told = [...merges.events, ...actions.map(tellDecision)];
  const isNews = events.length > 0 || told.length > 0 || merges.items.length > 0;
  if (!isNews && !isTimeKept(after, nowMs)) return undefined;
  const { turn, lastEvent, endedAt } = stored.build;
  const lastReport = events.at(-1)?.sequence ?? 0;
  const { budgetMicroUsd } = after.settings;
  const kept = { queue: merges.kept, preview: previewOf(news.reports) ?? beside.preview };
  const ended = hasEnded(after);
  return {
    turn,
    // Everything is read, except what did not fit the page.
    through: isMore ? lastReport : Math.max(lastEvent, lastReport),
    build: { ...toBuild({ ...after, turnAtMs: nowMs }, kept), endedAt: ended ? nowMs : endedAt },
    ...(budgetMicroUsd === before.settings.budgetMicroUsd ? {} : { budgetMicroUsd }),
    records: {
      ...observed.records,
      ...merges.records,
      ...changedRecords({ stored, before, observed: observed.state, after, places: observed.places, nowMs }),
      ...(ended ? endedRecords(stored, observed, merges, nowMs) : {}),
    },
    events: told,
  };
}

/** An ended build leaves no sandboxes and no open candidates. */
function endedRecords(stored: StoredBuild, observed: Intake, merges: MergingTurn, nowMs: number): Turn["records"] {
  const candidates = replaced(stored.candidates, merges.records.candidates);
  const end = { reason: "build ended", endedAt: nowMs };
  const sandboxes = replaced(stored.sandboxes, observed.records.sandboxes ?? []);
  return {
    sandboxes: sandboxes.map((sandbox) => ({ ...sandbox, ...end, status: "destroyed" })),
    candidates: candidates.map((one) => (one.endedAt === null ? { ...one, ...end, status: "rejected" } : one)),
  };
}

function replaced<T extends { readonly id: string }>(stored: readonly T[], told: readonly T[]): T[] {
  return [...stored.filter(({ id }) => !told.some((one) => one.id === id)), ...told];
}

function previewOf(reports: readonly Report[]): string | undefined {
  return reports.findLast((report) => report.type === "preview.ready")?.data.address;
}
