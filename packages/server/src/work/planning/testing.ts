import { join } from "node:path";
import {
  type BuildRecord,
  createFleet,
  createTick,
  type Dummies,
  type RepositoryReader,
  type Store,
} from "@slipway/engine";
import { planner, type ScriptedProgram, type ScriptedRequest, type Turn } from "@slipway/gateway/scripted";
import type { ModelPart } from "../../testing/world/model.ts";
import type { Place } from "../../testing/world/place.ts";
import { driver, type NewBuild, type StorePart } from "../../testing/world/store.ts";
import { createPlanning, type PlanningParts } from "./planning.ts";

export interface PlanningOptions extends NewBuild {
  /** Between the planning and the store. */
  readonly through?: (store: Store) => Store;
  readonly dummies?: Dummies;
  readonly openRepository?: () => RepositoryReader & AsyncDisposable;
}

export const waitsMs = [1, 1];

const noRepository = (): RepositoryReader & AsyncDisposable => {
  const refuse = async () => {
    throw new Error("a new app has no repository");
  };
  return { summarize: refuse, diagnose: refuse, look: refuse, [Symbol.asyncDispose]: async () => {} };
};

/** Every check fails on them. */
const noPass: Dummies = { passing: async () => [] };

/** A build that is planned. One that there is already goes on. */
export async function openPlanning(
  { through = (one) => one, openRepository = noRepository, dummies = noPass, ...given }: PlanningOptions,
  { directory, clock, store, create, reportsOf, models }: Place & StorePart & ModelPart,
  held: AsyncDisposableStack,
) {
  const { id: build } = await create({
    request: "A habit tracker",
    hold: "plan",
    budgetMicroUsd: 10_000_000,
    ...given,
  });
  let bell = Promise.withResolvers<void>();
  const rung = async () => {
    await bell.promise;
    bell = Promise.withResolvers();
  };
  const defects: unknown[] = [];
  const planningParts: PlanningParts = {
    store: through(store),
    models,
    clock,
    answersDirectory: join(directory, "answers"),
    openRepository,
    dummiesFor: () => dummies,
    passesWithout: async () => false,
    ring: async () => bell.resolve(),
    timing: { waitsMs, watchMs: 20 },
    onDefect: (error) => defects.push(error),
  };
  let generation = (await store.leases.find(build))?.generation ?? 0;
  let planning = createPlanning(planningParts);
  const newTick = () => {
    generation++;
    const work = { ...planning, heardAtMs: () => undefined };
    return createTick({ store, work, fleet: createFleet(100, () => {}), clock });
  };
  let tick = newTick();
  held.defer(() => planning[Symbol.asyncDispose]());
  const turn = () => tick(build, { ...driver, generation }, null);
  return {
    build,
    defects,
    turn,
    /** Until something is reported. */
    rung,
    get planning() {
      return planning;
    },
    /** Turns and rings, until the build is no longer planned by itself, or this happens. */
    async drive(until: Promise<unknown> = new Promise(() => {})): Promise<BuildRecord> {
      for (;;) {
        await turn();
        const now = await store.builds.get(build);
        if (now.status !== "planning") return now;
        const isOver = await Promise.race([bell.promise.then(() => false), until.then(() => true)]);
        if (isOver) return now;
        bell = Promise.withResolvers();
      }
    },
    /** As if the process had died: what is under way is lost, and another one drives the build. */
    async restart(): Promise<void> {
      await planning[Symbol.asyncDispose]();
      planning = createPlanning(planningParts);
      tick = newTick();
    },
    /** The data of reports of a type. */
    reports: (type: string) => reportsOf(build, type),
  };
}

type Question = "intent" | "checks" | "plan";

function questionOf({ answerSchema }: ScriptedRequest): Question {
  const text = JSON.stringify(answerSchema);
  if (text.includes('"coreValue"')) return "intent";
  return text.includes('"proves"') ? "checks" : "plan";
}

/** What the model was asked for, in order. */
export function questions({ asked }: Pick<ModelPart, "asked">): Question[] {
  return asked.map(questionOf);
}

/** The planner, but for one question. */
export function butFor(question: Question, answer: (turn: Turn) => Turn | Promise<Turn>): ScriptedProgram {
  return async (request) => {
    const turn = await planner(request);
    return questionOf(request) === question ? await answer(turn) : turn;
  };
}

/** By the gateway's own lines. */
export function spent({ lines }: Pick<ModelPart, "lines">): number {
  return lines.reduce((sum, { microUsd }) => sum + microUsd, 0);
}
