import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { afterEnd, type CreateSandboxInput, SlipwayError, type SnapshotId } from "@slipway/contract";
import { lockIntent, type NewEvent, type WorkingBuild } from "@slipway/engine";
import type { OwnedSandbox } from "@slipway/sandbox";
import { openBridge } from "@slipway/store/bridge";
import { generatedIntent } from "../../simulated/generated.ts";
import { task } from "../../testing/plans.ts";
import type { ModelPart } from "../../testing/world/model.ts";
import type { Place } from "../../testing/world/place.ts";
import type { SandboxesPart } from "../../testing/world/sandboxes.ts";
import { driver, type StorePart } from "../../testing/world/store.ts";
import { openBuildSecrets } from "../build-secrets.ts";
import { type Life, usualLife } from "../compute/life.ts";
import { createRepositories } from "../repository/repositories.ts";
import { createAttempts } from "./attempts.ts";

export interface AttemptsOptions {
  readonly tasks?: readonly string[];
  readonly budgetMicroUsd?: number;
  /** What attempts start from. */
  readonly base?: () => SnapshotId | null;
  /** Of every attempt's. */
  readonly sandbox?: CreateSandboxInput;
  readonly life?: Life;
  /** Of this machine: nothing more is made or taken in. */
  readonly isDiskFull?: () => boolean;
  /** What a write of a newer main into a sandbox fails with; undefined: it does not. */
  readonly refuseMain?: () => SlipwayError | undefined;
}

// biome-ignore lint/suspicious/noExplicitAny: what a report says is looked at by who knows it
type Data = Record<string, any>;

const reportedMs = 120_000;

/** A build with a plan, and attempts at its tasks. */
export async function openAttempts(
  {
    tasks = ["list"],
    budgetMicroUsd = 10_000_000,
    base = () => null,
    sandbox = {},
    life = usualLife,
    isDiskFull = () => false,
    refuseMain = () => undefined,
  }: AttemptsOptions,
  world: Place & SandboxesPart & StorePart & ModelPart,
  held: AsyncDisposableStack,
) {
  const { directory, clock, provider, database, store, models } = world;
  const bridge = await openBridge({ database, clock });
  held.defer(() => bridge.close());
  const repositories = createRepositories({ directory: join(directory, "builds"), environment: process.env });
  const secrets = openBuildSecrets(join(directory, "builds"));
  const build = await plannedBuild(world, tasks, budgetMicroUsd);
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
      life,
      warn: (message) => warnings.push(message),
      gatherMs: { plan: 10, progress: 10, discoveries: 10, ownership: 10, conflicts: 10, merges: 10 },
    });
  let attempts = make();
  held.defer(() => attempts[Symbol.asyncDispose]());
  const repository = await repositories.of(build.id);
  /** The data of reports of a type, so far. */
  const reports = (type: string) => world.reportsOf(build.id, type);
  return {
    bridge,
    repositories,
    repository,
    secrets,
    build,
    warnings,
    reports,
    get attempts() {
      return attempts;
    },
    /** Another server takes the build. Answers what this one does to take it back. */
    async loseBuild(): Promise<() => Promise<void>> {
      await store.leases.take(build.id, { holder: "another", generation: 2 }, 3_600_000);
      return async () => {
        holder = { ...driver, generation: 3 };
        await store.leases.take(build.id, holder, 3_600_000);
      };
    },
    /** Releases all attempts, and continues with others on the same state. */
    async restart(): Promise<void> {
      await attempts[Symbol.asyncDispose]();
      attempts = make();
    },
    /** The first report that fits, when it is there. Fails when the attempt ends before, unless that is what is waited for. */
    async reported(type: string, fits: (data: Data) => boolean = () => true): Promise<Data> {
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

/** As when the plan was made, and each task is assigned. */
export async function plannedBuild(
  { create, lead, apply }: StorePart,
  names: readonly string[],
  budgetMicroUsd = 10_000_000,
): Promise<WorkingBuild> {
  const build = await create({ budgetMicroUsd });
  const locked = await lockIntent(generatedIntent(build), 0);
  await lead(build);
  const tasks = names.map((id) =>
    task(id, [], { title: `Make ${id}`, description: `Make ${id}.`, component: "frontend", criteria: ["add-item"] }),
  );
  const next = { level: null, pattern: null, from: "main" };
  await apply(build, {
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
