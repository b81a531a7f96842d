import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type BuildId, type BuildMode, buildSettingsSchema, type Hold, newId, type Partition } from "@slipway/contract";
import {
  type BuildRecord,
  createFleet,
  createTick,
  type Dummies,
  newBuildDetails,
  type RepositoryReader,
  type Store,
  type Tick,
} from "@slipway/engine";
import type { GatewayLogLine } from "@slipway/gateway";
import { planner, type ScriptedProgram, type ScriptedRequest, type Turn } from "@slipway/gateway/scripted";
import { createRunLog, openDatabase, openStore } from "@slipway/store";
import { openModels, readModelSettings, type ServerModels } from "./open-models.ts";
import { createPlanning, type Planning, type PlanningParts } from "./planning.ts";

export interface SiteOptions {
  readonly program?: ScriptedProgram;
  readonly environment?: Readonly<Record<string, string>>;
  readonly request?: string;
  readonly mode?: BuildMode;
  readonly hold?: Hold;
  readonly budgetMicroUsd?: number;
  readonly partition?: Partition;
  /** How long the gateway waits for a word of the model. */
  readonly silenceMs?: number;
  /** Between the planning and the store. */
  readonly through?: (store: Store) => Store;
  readonly dummies?: Dummies;
  readonly openRepository?: () => RepositoryReader & AsyncDisposable;
  /** Of a build that another process has begun. */
  readonly begun?: { readonly directory: string; readonly build: BuildId };
}

/** A store, a gateway with a scripted model, and a build that is planned with them. */
export interface Site extends AsyncDisposable {
  readonly directory: string;
  readonly store: Store;
  readonly build: BuildId;
  readonly planning: Planning;
  readonly models: ServerModels;
  /** What the model was asked, and what the gateway says it cost. */
  readonly asked: readonly ScriptedRequest[];
  readonly lines: readonly GatewayLogLine[];
  readonly defects: readonly unknown[];
  /** Turns and rings, until the build is no longer planned by itself, or this happens. */
  drive(until?: Promise<unknown>): Promise<BuildRecord>;
  turn(): ReturnType<Tick>;
  /** Until something is reported. */
  rung(): Promise<void>;
  /** As if the process had died: what is under way is lost, and another one drives the build. */
  restart(): Promise<void>;
  /** The data of reports of a type. */
  reports(type: string): Promise<Record<string, unknown>[]>;
}

/** Quick to try again. */
export const gatewayTries = 2;
const retries = { tries: gatewayTries, baseMs: 1, maxMs: 2, maxRetryAfterMs: 2 };
export const waitsMs = [1, 1];

const noRepository = (): RepositoryReader & AsyncDisposable => {
  const refuse = async () => {
    throw new Error("a new app has no repository");
  };
  return { summarize: refuse, diagnose: refuse, look: refuse, [Symbol.asyncDispose]: async () => {} };
};

/** Every check fails on them. */
const noPass: Dummies = { passing: async () => [] };

export async function openSite(options: SiteOptions = {}): Promise<Site> {
  const {
    program = planner,
    request = "A habit tracker",
    mode = "new",
    hold = "plan",
    through = (one) => one,
  } = options;
  await using parts = new AsyncDisposableStack();
  const directory = options.begun?.directory ?? (await mkdtemp(join(tmpdir(), "slipway-planning-")));
  parts.defer(() => rm(directory, { recursive: true }));
  const database = parts.use(openDatabase({ url: `file:${join(directory, "slipway.db")}` }));
  const clock = { now: () => Date.now() };
  const store = await openStore(database, clock);
  await store.ledger.abandon("server-1");
  const asked: ScriptedRequest[] = [];
  const lines: GatewayLogLine[] = [];
  const { silenceMs = 20_000 } = options;
  const timeouts = { connectMs: 20_000, firstByteMs: silenceMs, idleMs: silenceMs, totalMs: 60_000 };
  const environment = { SLIPWAY_MODEL: "scripted/program", ...options.environment };
  const models = parts.use(
    await openModels({
      settings: { ...readModelSettings(environment, directory), timeouts, retries },
      ledger: store.ledger,
      log: createRunLog(database),
      holder: "server-1",
      clock,
      directory,
      secret: "a secret of the tests",
      programs: {
        program(scripted) {
          asked.push(scripted);
          return program(scripted);
        },
      },
      logger: (line) => lines.push(line),
    }),
  );

  const { budgetMicroUsd = 10_000_000, partition } = options;
  const settings = buildSettingsSchema.parse({ budgetMicroUsd, partition });
  const build = options.begun?.build ?? newId("bld");
  const details = newBuildDetails(settings, hold, clock.now());
  const record = { id: build, account: "ada", project: "shop", mode, request, details };
  await store.builds.create(record, settings.budgetMicroUsd, { type: "build.created" });

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
    openRepository: options.openRepository ?? noRepository,
    passesWithout: async () => false,
    dummiesFor: () => options.dummies ?? noPass,
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
  parts.defer(() => planning[Symbol.asyncDispose]());
  const turn = () => tick(build, { holder: "server-1", generation }, null);
  const held = parts.move();
  return {
    directory,
    store,
    build,
    models,
    asked,
    lines,
    defects,
    turn,
    rung,
    get planning() {
      return planning;
    },
    async drive(until = new Promise(() => {})) {
      for (;;) {
        await turn();
        const now = await store.builds.get(build);
        if (now.status !== "planning") return now;
        const isOver = await Promise.race([bell.promise.then(() => false), until.then(() => true)]);
        if (isOver) return now;
        bell = Promise.withResolvers();
      }
    },
    async restart() {
      await planning[Symbol.asyncDispose]();
      planning = createPlanning(planningParts);
      tick = newTick();
    },
    async reports(type) {
      const events = await store.events.read(build, 0, { source: "report" });
      return events.filter((event) => event.type === type).map(({ data }) => data);
    },
    [Symbol.asyncDispose]: () => held.disposeAsync(),
  };
}

type Question = "intent" | "checks" | "plan";

function questionOf({ answerSchema }: ScriptedRequest): Question {
  const text = JSON.stringify(answerSchema);
  if (text.includes('"coreValue"')) return "intent";
  return text.includes('"proves"') ? "checks" : "plan";
}

/** What the model was asked for, in order. */
export function questions({ asked }: Site): Question[] {
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
export function spent({ lines }: Site): number {
  return lines.reduce((sum, { microUsd }) => sum + microUsd, 0);
}
