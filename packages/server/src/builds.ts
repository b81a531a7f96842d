import { randomUUID } from "node:crypto";
import {
  type BuildId,
  type BuildOrderName,
  type BuildSettings,
  type BuildsPage,
  type BuildsQuery,
  type BuildView,
  buildSettingsSchema,
  type CostsView,
  type EventsPage,
  type EventView,
  type IntentView,
  newId,
  type PlanView,
  SlipwayError,
  type StartBuildOutput,
} from "@slipway/contract";
import {
  type BuildOrder,
  type BuildRecord,
  costDimensions,
  editIntent,
  hasEnded,
  maxPage,
  type NewEvent,
  newBuildDetails,
  order,
  readReport,
  readState,
  report,
  type Store,
  type TaskRecord,
} from "@slipway/engine";
import { eventViewOf, intentViewOf, planViewOf, readSource, summaryOf, viewOf } from "./build-views.ts";
import type { News } from "./news.ts";

/** What faces ask of builds. `key` makes what is sent twice count once; without one, each call counts. */
export interface BuildFace {
  start(account: string, wanted: StartBuildOutput): Promise<BuildView>;
  get(build: BuildId): Promise<BuildView>;
  /** Newest first. */
  list(query: BuildsQuery): Promise<BuildsPage>;
  /** Fails with `build_ended`. Answers soon, with what the order has changed by then. */
  order(build: BuildId, given: BuildOrderName, key?: string): Promise<BuildView>;
  /** Fails with `invalid_budget` for one that is spent already. */
  setBudget(build: BuildId, budgetMicroUsd: number, key?: string): Promise<BuildView>;
  intent(build: BuildId): Promise<IntentView>;
  /** Fails with `not_ready` before the draft, and with `intent_locked` once the build does not wait for the user any more. */
  editIntent(build: BuildId, edit: unknown, key?: string): Promise<IntentView>;
  /** Lets a build that waits for it lock its intent and go on. */
  lock(build: BuildId): Promise<BuildView>;
  plan(build: BuildId): Promise<PlanView>;
  costs(build: BuildId): Promise<CostsView>;
  /** Fails with `invalid_request` when the build's events end before `after`. */
  events(build: BuildId, after: number, limit: number): Promise<EventsPage>;
  /** What has happened and what does, until the build has ended or the signal aborts. Fails as `events` does. */
  follow(build: BuildId, after: number, signal: AbortSignal): AsyncIterable<EventView>;
}

export interface BuildFaceParts {
  readonly store: Store;
  readonly clock: { now(): number };
  readonly news: News;
  /** What a build is set to where its user does not say. */
  readonly defaults: Partial<BuildSettings>;
  /** There is something new in the build: who drives it is woken, and one that nobody drives is taken up. */
  ring(build: BuildId): void;
  /** Why no task can be attempted; left out: they can. */
  readonly plansOnly?: string | undefined;
  /** How long an order waits for its effect. */
  readonly settleMs?: number;
}

/** How often those who wait look for what other processes have done. */
const pollMs = 500;
const eventsAtOnce = 500;

export function createBuildFace(parts: BuildFaceParts): BuildFace {
  const { store, clock, news, defaults, ring, plansOnly, settleMs = 2000 } = parts;
  const inTurn = createTurns();

  const view = async (build: BuildId): Promise<BuildView> => {
    const stored = await store.builds.state(build);
    return viewOf(stored, await store.ledger.balance(build), await readSource(store, build));
  };

  /** Kept first: whoever drives the build finds it, whether the bell is heard or not. */
  const tell = async (build: BuildId, event: NewEvent): Promise<void> => {
    const sequence = await store.events.report(build, [event]);
    using listening = news.listen(build);
    news.tell(build);
    ring(build);
    const limit = AbortSignal.timeout(settleMs);
    while (!limit.aborted) {
      const record = await store.builds.get(build);
      if (record.appliedThrough >= sequence || hasEnded(record)) return;
      await listening.next(pollMs, limit);
    }
  };

  const requireAttempts = (): void => {
    if (plansOnly !== undefined) throw new SlipwayError("capability_missing", plansOnly);
  };

  const obey = async (build: BuildId, given: BuildOrder, event: NewEvent): Promise<BuildView> => {
    const state = readState(await store.builds.state(build));
    if (given.type === "resume" && state.planning === null && !hasEnded(state)) requireAttempts();
    const { spentMicroUsd } = await store.ledger.balance(build);
    order({ ...state, spentMicroUsd: Math.max(state.spentMicroUsd, spentMicroUsd) }, given, clock.now());
    await tell(build, event);
    return await view(build);
  };

  /** The intent with the edits that nobody has taken in yet. */
  const latestIntent = async (build: BuildId) => {
    const stored = await store.builds.state(build);
    const [record] = await store.builds.records(build, "intents");
    let latest = intentViewOf(record);
    let isHeld = readState(stored).planning?.step === "held";
    for (const event of await store.events.read(build, stored.build.appliedThrough, { source: "report" })) {
      const told = readReport(event);
      if (told?.type === "intent.edited") latest = { ...told.data.open, hash: null, lockedAtMs: null };
      if (told?.type === "intent.released") isHeld = false;
    }
    return { latest, isHeld };
  };

  return {
    async start(account, { id = newId("bld", clock.now()), request, mode, source, project, settings, hold }) {
      if (hold !== "plan" && hold !== "both") requireAttempts();
      const chosen = buildSettingsSchema.parse({ ...defaults, ...settings });
      const details = newBuildDetails(chosen, hold, clock.now());
      const build = { id, account, project, mode, request, priority: chosen.priority, details };
      const data = { mode, hold, ...(source !== undefined && { source }) };
      const { budgetMicroUsd } = chosen;
      await store.builds.create(build, budgetMicroUsd, { type: "build.created", key: "build.created", data });
      ring(id);
      return await view(id);
    },

    get: view,

    async list({ status, project, before, limit }) {
      const records = await store.builds.list({
        limit: limit + 1,
        ...(status !== undefined && { statuses: status }),
        ...(project !== undefined && { project }),
        ...(before !== undefined && { before }),
      });
      const builds = [];
      for (const build of records.slice(0, limit)) {
        const tasks = await readTasks(store, build.id);
        builds.push(summaryOf({ build, tasks }, await store.ledger.balance(build.id)));
      }
      return { builds, next: records.length > limit ? (builds.at(-1)?.id ?? null) : null };
    },

    order: (build, given, key = randomUUID()) =>
      obey(build, { type: given }, report(`order.${given}`, `order:${key}`, {})),

    setBudget: (build, budgetMicroUsd, key = randomUUID()) =>
      obey(build, { type: "set-budget", budgetMicroUsd }, report("order.budget", `order:${key}`, { budgetMicroUsd })),

    async intent(build) {
      return (await latestIntent(build)).latest;
    },

    editIntent: (build, edit, key = randomUUID()) =>
      inTurn(build, async () => {
        const { latest, isHeld } = await latestIntent(build);
        if (!isHeld) throw new SlipwayError("intent_locked", "the build does not wait for edits of its intent");
        const open = editIntent({ status: "open", intent: latest.intent }, edit);
        await tell(build, report("intent.edited", `intent.edited:${key}`, { open }));
        return { ...open, hash: null, lockedAtMs: null };
      }),

    lock: (build) =>
      inTurn(build, async () => {
        if ((await latestIntent(build)).isHeld) {
          await tell(build, report("intent.released", "intent.released", {}));
        }
        return await view(build);
      }),

    async plan(build) {
      const stored = await store.builds.state(build);
      return planViewOf(stored, readState(stored), await store.builds.records(build, "plans"));
    },

    async costs(build) {
      const { budgetMicroUsd, spentMicroUsd, reservedMicroUsd } = await requireBalance(store, build);
      const by = await Promise.all(
        costDimensions.map(async (dimension) => [dimension, await store.ledger.costs(build, dimension)] as const),
      );
      const money = { budgetMicroUsd, spentMicroUsd, reservedMicroUsd };
      return { money, by: Object.fromEntries(by) as unknown as CostsView["by"] };
    },

    async events(build, after, limit) {
      const record = await store.builds.get(build);
      requireWithin(record, after);
      const events = await store.events.read(build, after, { limit });
      const next = events.at(-1)?.sequence ?? after;
      return { events: events.map(eventViewOf), next, ended: hasEnded(record) && next >= record.lastEvent };
    },

    async *follow(build, after, signal) {
      using listening = news.listen(build);
      requireWithin(await store.builds.get(build), after);
      let last = after;
      while (!signal.aborted) {
        const record = await store.builds.get(build);
        const events = await store.events.read(build, last, { limit: eventsAtOnce });
        for (const event of events) yield eventViewOf(event);
        last = events.at(-1)?.sequence ?? last;
        if (events.length === eventsAtOnce) continue;
        if (hasEnded(record) && last >= record.lastEvent) return;
        await listening.next(pollMs, signal);
      }
    },
  };
}

/** Less than the whole state: a list has many builds. */
async function readTasks({ builds }: Store, build: BuildId): Promise<readonly TaskRecord[]> {
  const tasks: TaskRecord[] = [];
  for (;;) {
    const page = await builds.records(build, "tasks", { offset: tasks.length });
    tasks.push(...page);
    if (page.length < maxPage) return tasks;
  }
}

function requireWithin({ id, lastEvent }: BuildRecord, after: number): void {
  if (after <= lastEvent) return;
  throw new SlipwayError("invalid_request", `the events of ${id} end at ${lastEvent}, before ${after}`);
}

async function requireBalance(store: Store, build: BuildId) {
  await store.builds.get(build);
  return await store.ledger.balance(build);
}

type InTurn = <T>(build: BuildId, work: () => Promise<T>) => Promise<T>;

/** One after the other for each build: an edit begins with what the one before has left. */
function createTurns(): InTurn {
  const last = new Map<BuildId, Promise<unknown>>();
  return async (build, work) => {
    const turn = (last.get(build) ?? Promise.resolve()).then(work);
    const settled = turn.catch(() => undefined);
    last.set(build, settled);
    try {
      return await turn;
    } finally {
      if (last.get(build) === settled) last.delete(build);
    }
  };
}
