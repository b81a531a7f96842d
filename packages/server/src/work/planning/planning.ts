import process from "node:process";
import { setInterval } from "node:timers/promises";
import { type BuildId, hasCode, SlipwayError } from "@slipway/contract";
import {
  createPipeline,
  type Dummies,
  itemsFor,
  maxPage,
  type NewEvent,
  type RepositoryReader,
  type Store,
  type Work,
  type WorkingBuild,
} from "@slipway/engine";
import { AnswerError } from "@slipway/gateway/roles";
import { keepAnswer, tellFailure } from "./answers.ts";
import { createMade } from "./made.ts";
import type { ServerModels } from "./open-models.ts";
import { checkPatiently, patientDummies, patientModels, whenDatabaseIsThere, withoutEnd } from "./patience.ts";
import { failure, keysOf, type PassesWithout, type PlanningItem, refusal, runStage } from "./stages.ts";
import { createTurns } from "./turns.ts";

export interface PlanningParts {
  readonly store: Store;
  readonly models: Pick<ServerModels, "forBuild">;
  /** The repository that a build of mode feature or fix starts from. */
  openRepository(build: WorkingBuild): RepositoryReader & AsyncDisposable;
  /** `work` names what they are for: within a build, no two at the same time have the same name. */
  dummiesFor(build: WorkingBuild, work: string): Dummies;
  /** Imports that repository. Fails before any model is asked if the build cannot use it. */
  readonly makeMain?: ((build: WorkingBuild) => Promise<void>) | undefined;
  readonly passesWithout: PassesWithout;
  /** What the provider of sandboxes has. Left out: none. */
  readonly gpus?: readonly string[] | undefined;
  /** Wakes the build. */
  ring(build: BuildId): Promise<void>;
  readonly clock: { now(): number };
  /** Holds unusable answers of models, for the user. */
  readonly answersDirectory: string;
  readonly timing?: Partial<PlanningTiming> | undefined;
  /** Called on an unexpected failure. Left out: the process warns. */
  readonly onDefect?: ((error: unknown) => void) | undefined;
}

export interface PlanningTiming {
  /** Waits before each retry of a question, or of checks on dummies. */
  readonly waitsMs: readonly number[];
  /** How often to check whether the build has ended. */
  readonly watchMs: number;
}

/** Runs the stages before the first task, and plans for remaining work, in this process beside the build loop. */
export type Planning = Pick<Work, "carryOut" | "reattach"> & AsyncDisposable;

interface Underway {
  readonly build: BuildId;
  readonly controller: AbortController;
  readonly ended: Promise<unknown>;
}

const usualTiming: PlanningTiming = { waitsMs: [5_000, 30_000], watchMs: 2_000 };
const maxAtOnce = 8;

export function createPlanning(parts: PlanningParts): Planning {
  const { store, onDefect = warn } = parts;
  const timing = { ...usualTiming, ...parts.timing };
  const underway = new Map<string, Underway>();
  const inTurn = createTurns(maxAtOnce);

  const begin = (build: WorkingBuild, item: PlanningItem) => {
    const name = nameOf(build, item);
    if (underway.has(name)) return;
    const controller = new AbortController();
    const { signal } = controller;
    abortWithBuild(store, build.id, controller, timing.watchMs);
    const ended = inTurn(() => carry({ ...parts, timing, onDefect }, build, item, signal))
      .finally(() => underway.delete(name))
      // Without the bell, the next turn finds the report.
      .then(() => parts.ring(build.id).catch(() => {}))
      // An aborted item reports nothing.
      .catch((error) => signal.aborted || onDefect(error))
      .finally(() => controller.abort());
    underway.set(name, { build: build.id, controller, ended });
  };

  return {
    async carryOut(build, asked) {
      for (const item of itemsFor("planning", asked)) begin(build, item);
    },
    async reattach(build, all) {
      const items = itemsFor("planning", all);
      const wanted = new Set(items.map((item) => nameOf(build, item)));
      for (const [name, { build: of, controller }] of underway) {
        if (of === build.id && !wanted.has(name)) controller.abort();
      }
      for (const item of items) begin(build, item);
    },
    async [Symbol.asyncDispose]() {
      const left = [...underway.values()];
      for (const { controller } of left) controller.abort();
      await Promise.all(left.map(({ ended }) => ended));
    },
  };
}

type CarryParts = PlanningParts & { readonly timing: PlanningTiming; onDefect(error: unknown): void };

/** Does the item and reports its outcome. Pays only for what is not reported yet. */
async function carry(parts: CarryParts, build: WorkingBuild, item: PlanningItem, signal: AbortSignal): Promise<void> {
  const { store } = parts;
  signal.throwIfAborted();
  if (await whenDatabaseIsThere(() => isReported(store, build.id, item), signal)) return;
  const told = await outcomeOf(parts, build, item, signal);
  await whenDatabaseIsThere(() => store.events.report(build.id, [told]), signal);
}

/** Returns the report, success or failure. Throws only when aborted. */
async function outcomeOf(
  parts: CarryParts,
  build: WorkingBuild,
  item: PlanningItem,
  signal: AbortSignal,
): Promise<NewEvent> {
  // Read first, so that a raise meanwhile counts.
  const { budgetMicroUsd } = await whenDatabaseIsThere(() => parts.store.ledger.balance(build.id), signal);
  try {
    return await make(parts, build, item, signal);
  } catch (error) {
    signal.throwIfAborted();
    if (!(error instanceof SlipwayError)) parts.onDefect(error);
    if (item.type !== "plan-remaining" || !hasCode(error, "budget_exhausted")) {
      return failure(item, tellFailure(error), budgetMicroUsd);
    }
    return refusal(item, budgetMicroUsd);
  }
}

async function make(
  {
    models,
    openRepository,
    dummiesFor,
    makeMain,
    passesWithout,
    gpus = [],
    store,
    clock,
    timing,
    answersDirectory,
  }: CarryParts,
  build: WorkingBuild,
  item: PlanningItem,
  signal: AbortSignal,
): Promise<NewEvent> {
  if (build.mode !== "new" && item.type === "stage" && item.stage === "draft") await makeMain?.(build);
  await using roles = await whenDatabaseIsThere(() => models.forBuild(build.id), signal);
  await using repository = openRepository(build);
  // A user waits for the stages; later, an unreachable model is no reason to end a build.
  const waitsMs = item.type === "stage" ? timing.waitsMs : withoutEnd(timing.waitsMs);
  const patient = patientModels(roles, waitsMs);
  const passes: PassesWithout = (...given) =>
    checkPatiently(() => passesWithout(...given), { waitsMs: timing.waitsMs, signal });
  const dummies = patientDummies(dummiesFor(build, nameIn(item)), timing.waitsMs);
  try {
    const pipeline = createPipeline({ models: patient, dummies, repository, clock, signal });
    return await runStage(build, item, {
      pipeline,
      made: createMade(store, signal),
      passesWithout: passes,
      gpus,
      signal,
    });
  } catch (error) {
    if (!hasCode(error, "invalid_answer") && !(error instanceof AnswerError)) throw error;
    throw await keepAnswer(error, patient.lastAnswer ?? "", [answersDirectory, build.id, `${nameIn(item)}.txt`]);
  }
}

/** Looks in the events that the build loop has not applied; it does not ask again for what it has applied. */
async function isReported({ builds, events }: Store, build: BuildId, item: PlanningItem): Promise<boolean> {
  const keys = Object.values(keysOf(item));
  let after = (await builds.get(build)).appliedThrough;
  for (;;) {
    const page = await events.read(build, after, { source: "report", limit: maxPage });
    if (page.some(({ key }) => key !== null && keys.includes(key))) return true;
    if (page.length < maxPage) return false;
    after = page.at(-1)?.sequence ?? after;
  }
}

/** Stops spending on a build that ended, even by another server. */
function abortWithBuild(store: Store, build: BuildId, controller: AbortController, watchMs: number): void {
  const watch = async () => {
    for await (const _ of setInterval(watchMs, undefined, { signal: controller.signal })) {
      const isOver = await store.builds.get(build).then(
        ({ endedAt }) => endedAt !== null,
        () => false,
      );
      if (isOver) controller.abort();
    }
  };
  // Ends only by the signal.
  watch().catch(() => {});
}

function nameOf(build: WorkingBuild, item: PlanningItem): string {
  return `${build.id} ${nameIn(item)}`;
}

function nameIn(item: PlanningItem): string {
  if (item.type === "settle-dispute") return `dispute-${item.dispute}-${item.round}`;
  return `${item.type === "stage" ? item.stage : "remaining"}-${item.round}`;
}

function warn(error: unknown): void {
  process.emitWarning(error instanceof Error ? error : String(error));
}
