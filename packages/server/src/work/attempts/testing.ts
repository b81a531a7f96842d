import { chmod, mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { toolDirectories } from "@slipway/agent-host";
import {
  type AttemptId,
  afterEnd,
  buildSettingsSchema,
  type CreateSandboxInput,
  newId,
  SlipwayError,
  type SnapshotId,
  type Task,
} from "@slipway/contract";
import {
  type AttemptWork,
  type Bridge,
  lockIntent,
  type NewEvent,
  newBuildDetails,
  type Store,
  type WorkingBuild,
} from "@slipway/engine";
import type { ScriptedProgram } from "@slipway/gateway/scripted";
import type { OwnedSandbox, SandboxProvider } from "@slipway/sandbox";
import { openProvider } from "@slipway/sandbox/open";
import { createRunLog, openDatabase, openStore } from "@slipway/store";
import { openBridge } from "@slipway/store/bridge";
import { generatedIntent } from "../../simulated/generated.ts";
import { type BuildSecrets, openBuildSecrets } from "../build-secrets.ts";
import { openModels, readModelSettings } from "../planning/open-models.ts";
import { createRepositories, type Repositories } from "../repository/repositories.ts";
import type { BuildRepository } from "../repository/repository.ts";
import { type Attempts, createAttempts } from "./attempts.ts";

export interface SiteOptions {
  readonly program: ScriptedProgram;
  readonly tasks?: readonly string[];
  readonly budgetMicroUsd?: number;
  /** What attempts start from. */
  readonly base?: () => SnapshotId | null;
  /** Of every attempt's. */
  readonly sandbox?: CreateSandboxInput;
  /** Of this machine: nothing more is made or taken in. */
  readonly isDiskFull?: () => boolean;
  /** What a write of a newer main into a sandbox fails with; undefined: it does not. */
  readonly refuseMain?: () => SlipwayError | undefined;
}

/** A build with a plan, a gateway with a scripted model, real sandboxes, and attempts in them. */
export interface Site extends AsyncDisposable {
  readonly directory: string;
  readonly store: Store;
  readonly bridge: Bridge;
  readonly provider: SandboxProvider;
  readonly repositories: Repositories;
  readonly repository: BuildRepository;
  readonly secrets: BuildSecrets;
  readonly build: WorkingBuild;
  readonly attempts: Attempts;
  readonly warnings: readonly string[];
  /** Of the build. */
  raiseBudget(microUsd: number): Promise<void>;
  /** A turn of the build has taken in all that was reported. */
  takeReports(): Promise<void>;
  /** Another server takes the build. Answers what this one does to take it back. */
  loseBuild(): Promise<() => Promise<void>>;
  /** Releases all, and continues with another one on the same state. */
  restart(): Promise<void>;
  /** The data of reports of a type, so far. */
  reports(type: string): Promise<Data[]>;
  /** The first report that fits, when it is there. Fails when the attempt ends before, unless that is what is waited for. */
  reported(type: string, fits?: (data: Data) => boolean): Promise<Data>;
}

// biome-ignore lint/suspicious/noExplicitAny: what a report says is looked at by who knows it
type Data = Record<string, any>;

const clock = { now: () => Date.now() };
const reportedMs = 120_000;
const driver = { holder: "test", generation: 1 };

export async function openSite({
  program,
  tasks = ["list"],
  budgetMicroUsd,
  base = () => null,
  sandbox = {},
  isDiskFull = () => false,
  refuseMain = () => undefined,
}: SiteOptions): Promise<Site> {
  await using parts = new AsyncDisposableStack();
  const directory = await mkdtemp("/var/tmp/slipway-attempts-");
  parts.defer(() => rm(directory, { recursive: true, force: true, maxRetries: 10 }));
  // As root, sandboxes run as another user, who must be able to pass through.
  await chmod(directory, 0o711);
  const database = parts.use(openDatabase({ url: `file:${join(directory, "slipway.db")}` }));
  const store = await openStore(database, clock);
  const bridge = await openBridge({ database, clock });
  parts.defer(() => bridge.close());
  const models = parts.use(
    await openModels({
      settings: {
        ...readModelSettings({ SLIPWAY_MODEL: "scripted/program" }, directory),
        retries: { tries: 2, baseMs: 10, maxMs: 50, maxRetryAfterMs: 100 },
      },
      ledger: store.ledger,
      log: createRunLog(database),
      holder: "server-1",
      clock,
      directory,
      secret: "a secret of the tests",
      programs: { program },
    }),
  );
  const tools = await toolDirectories("builtin", "/nowhere");
  const provider = parts.use(
    await openProvider({ stateDir: join(directory, "state"), environment: process.env, tools }),
  );
  parts.defer(async () => {
    for (const { id } of await provider.list()) await (await provider.get(id)).destroy();
  });
  const repositories = createRepositories({ directory: join(directory, "builds"), environment: process.env });
  const secrets = openBuildSecrets(join(directory, "builds"));
  const build = await plannedBuild(store, tasks, budgetMicroUsd);
  const warnings: string[] = [];
  let holder = driver;
  let bell = Promise.withResolvers<void>();
  const report = async (id: typeof build.id, events: readonly NewEvent[]) => {
    await store.events.report(id, events);
    bell.resolve();
    bell = Promise.withResolvers();
  };
  const ifRoom = async <T>(work: () => Promise<T>): Promise<T> => {
    if (isDiskFull()) throw new SlipwayError("out_of_disk", "no space left on device");
    return await work();
  };
  const make = () =>
    createAttempts({
      secrets,
      store,
      bridge,
      report,
      note: (id, notes) => store.notes.write(id, holder, notes),
      clock,
      gateway: models.gateway,
      repositories: {
        ...repositories,
        async of(id) {
          const opened = await repositories.of(id);
          return { ...opened, take: (bundle, options) => ifRoom(() => opened.take(bundle, options)) };
        },
      },
      provider: {
        snapshots: provider.snapshots,
        create: (request, call) =>
          ifRoom(async () => refusing(await provider.create({ ...request, ...sandbox }, call), refuseMain)),
        get: (id, call) => provider.get(id, call),
        list: (filter, call) => provider.list(filter, call),
        events: (call) => provider.events(call),
      },
      workspaces: { base: async () => base() },
      warn: (message) => warnings.push(message),
      gatherMs: { plan: 10, progress: 10, discoveries: 10, ownership: 10, conflicts: 10, merges: 10 },
    });
  let attempts = make();
  parts.defer(() => attempts[Symbol.asyncDispose]());
  const repository = await repositories.of(build.id);
  const reports = async (type: string) => {
    const events = await store.events.read(build.id, 0, { source: "report" });
    return events.filter((event) => event.type === type).map(({ data }) => data as Data);
  };
  const held = parts.move();
  return {
    directory,
    store,
    bridge,
    provider,
    repositories,
    repository,
    secrets,
    build,
    warnings,
    reports,
    get attempts() {
      return attempts;
    },
    async raiseBudget(microUsd) {
      const { turn, lastEvent } = await store.builds.get(build.id);
      await store.builds.apply(build.id, driver, { turn, through: lastEvent, budgetMicroUsd: microUsd, events: [] });
    },
    async takeReports() {
      const { turn, lastEvent } = await store.builds.get(build.id);
      await store.builds.apply(build.id, driver, { turn, through: lastEvent, events: [] });
    },
    async loseBuild() {
      await store.leases.take(build.id, { holder: "another", generation: 2 }, 3_600_000);
      return async () => {
        holder = { ...driver, generation: 3 };
        await store.leases.take(build.id, holder, 3_600_000);
      };
    },
    async restart() {
      await attempts[Symbol.asyncDispose]();
      attempts = make();
    },
    async reported(type, fits = () => true) {
      const until = Date.now() + reportedMs;
      for (;;) {
        const rung = bell.promise;
        const found = (await reports(type)).find(fits);
        if (found !== undefined) return found;
        const ended = type === "attempt.ended" ? undefined : (await reports("attempt.ended")).at(-1);
        if ((ended !== undefined && afterEnd(ended["end"]) === "retry") || Date.now() > until) {
          const all = (await store.events.read(build.id, 0, { source: "report" })).slice(-5);
          throw new Error(`there is no ${type}: ${JSON.stringify({ all, warnings })}`);
        }
        await Promise.race([rung, delay(5000)]);
      }
    },
    [Symbol.asyncDispose]: () => held.disposeAsync(),
  };
}

function refusing(sandbox: OwnedSandbox, refuse: () => SlipwayError | undefined): OwnedSandbox {
  const write: OwnedSandbox["files"]["write"] = async (path, content, options) => {
    const refusal = /slipway-main\/[0-9a-f]{40}/.test(path) ? refuse() : undefined;
    if (refusal !== undefined) throw refusal;
    return await sandbox.files.write(path, content, options);
  };
  return { ...sandbox, files: { ...sandbox.files, write } };
}

export async function plannedBuild(
  store: Store,
  names: readonly string[],
  budgetMicroUsd = 10_000_000,
): Promise<WorkingBuild> {
  const build: WorkingBuild = {
    id: newId("bld"),
    account: "ada",
    project: "shop",
    mode: "new",
    request: "A packing list",
  };
  const settings = buildSettingsSchema.parse({ budgetMicroUsd });
  const details = newBuildDetails(settings, "none", clock.now());
  await store.builds.create({ ...build, details }, budgetMicroUsd, { type: "build.created" });
  const locked = await lockIntent(generatedIntent(build), 0);
  await store.leases.take(build.id, driver, 3_600_000);
  const tasks = names.map(
    (id): Task => ({
      id,
      title: `Make ${id}`,
      description: `Make ${id}.`,
      component: "frontend",
      features: ["list"],
      dependencies: [],
      expectedFiles: [],
      estimate: { minutes: 5, usd: 1 },
      criteria: ["add-item"],
    }),
  );
  const next = { level: null, pattern: null, from: "main" };
  await store.builds.apply(build.id, driver, {
    turn: 0,
    through: 0,
    events: [],
    records: {
      intents: [{ build: build.id, hash: locked.hash, intent: JSON.parse(JSON.stringify({ locked })) }],
      plans: [{ build: build.id, round: 1, intentHash: locked.hash, tasks }],
      tasks: tasks.map(({ id }) => ({
        build: build.id,
        id,
        status: "assigned",
        component: "frontend",
        dependencies: [],
        level: null,
        attempts: 1,
        reason: null,
        details: { estimateMs: 1, failures: [], next, interruptions: 0, notBeforeMs: 0, failure: null },
      })),
    },
  });
  return build;
}

export function attemptAt(task: string, change: Partial<AttemptWork> = {}): AttemptWork {
  return {
    type: "attempt",
    id: newId("att") as AttemptId,
    task,
    number: 1,
    respawn: 0,
    paused: false,
    level: null,
    pattern: null,
    from: "main",
    answer: null,
    ...change,
  };
}
