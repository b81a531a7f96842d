import { type AttemptId, type BuildId, type BuildSettings, buildSettingsSchema, hasCode } from "@slipway/contract";
import {
  type AttemptWork,
  type Bridge,
  itemsFor,
  type NewEvent,
  type NoteWork,
  patternScope,
  type Store,
  type Work,
  type WorkItem,
  type WorkingBuild,
} from "@slipway/engine";
import type { Gateway } from "@slipway/gateway";
import type { SandboxProvider } from "@slipway/sandbox";
import { readAll } from "../all-records.ts";
import { readSource } from "../build-record.ts";
import type { BuildSecrets } from "../build-secrets.ts";
import { whenDatabaseIsThere } from "../planning/patience.ts";
import type { Repositories } from "../repository/repositories.ts";
import type { BuildRepository } from "../repository/repository.ts";
import type { Workspaces } from "../workspaces/workspaces.ts";
import { Attempt } from "./attempt.ts";
import { removeSnapshots } from "./checkpoints.ts";
import { type Kept, type KeptAttempts, openKeptAttempts } from "./kept.ts";
import { isMainElsewhere, makeMain } from "./make-main.ts";
import { speakerOf } from "./names.ts";
import { purpose, removePlace } from "./place.ts";
import { createShared, type Shared, type SharedOptions } from "./shared.ts";

export interface AttemptsParts {
  /** It has the tool directories of the agents that builds are set to. */
  readonly provider: Pick<SandboxProvider, "create" | "get" | "list" | "snapshots" | "events">;
  readonly repositories: Repositories;
  readonly workspaces: Pick<Workspaces, "base">;
  readonly secrets: Pick<BuildSecrets, "of">;
  readonly gateway: Pick<Gateway, "openRun" | "serve">;
  readonly store: Store;
  readonly bridge: Bridge;
  readonly report: (build: BuildId, events: readonly NewEvent[]) => Promise<void>;
  readonly note: NoteWork;
  readonly clock: { now(): number };
  readonly gatherMs?: SharedOptions["gatherMs"] | undefined;
  readonly warn: (message: string) => void;
}

export interface Attempts extends Required<Work>, AsyncDisposable {
  /** What the build begins with, made when it is not there. Fails with why there can be none, as `repository_refused`. */
  makeMain(build: WorkingBuild): Promise<void>;
  /** Attempts that are under way learn of a new main. */
  mainMoved(build: WorkingBuild, commit: string): Promise<void>;
}

interface OpenBuild {
  readonly attempts: Map<AttemptId, Attempt>;
  /** Those that were ended: who asks for one of them asks late. */
  readonly over: Set<AttemptId>;
  /** Those of them that still leave their sandboxes. */
  readonly ending: Set<Promise<void>>;
  readonly kept: KeptAttempts;
  readonly shared: Shared;
  repository(): Promise<BuildRepository>;
}

/** Attempts at tasks in sandboxes, by agents. Disposing it lets go of them: they go on, and another one finds them. */
export function createAttempts(parts: AttemptsParts): Attempts {
  const { provider, repositories, store, bridge, clock, warn } = parts;
  const builds = new Map<BuildId, OpenBuild>();
  const closing = new AbortController();

  const report = (build: BuildId) => (events: readonly NewEvent[]) =>
    whenDatabaseIsThere(() => parts.report(build, events), closing.signal);

  /** Once, unless it fails: whoever asks again tries again. */
  const mainOf = (build: WorkingBuild) => {
    let made: Promise<BuildRepository> | undefined;
    const make = async () => {
      const repository = await repositories.of(build.id);
      const source = () => readSource(store, build.id);
      await report(build.id)([await makeMain({ provider, repository, source, clock, signal: closing.signal }, build)]);
      return repository;
    };
    return () => {
      made ??= make().catch((error) => {
        made = undefined;
        throw error;
      });
      return made;
    };
  };

  const open = (build: WorkingBuild): OpenBuild => {
    const known = builds.get(build.id);
    if (known !== undefined) return known;
    const attempts = new Map<AttemptId, Attempt>();
    const repository = mainOf(build);
    const shared = createShared({
      build: build.id,
      scope: patternScope(build),
      store,
      bridge,
      repository,
      ...(parts.gatherMs && { gatherMs: parts.gatherMs }),
      open: () =>
        new Map([...attempts.values()].flatMap((one) => (one.tip === null ? [] : [[speakerOf(one.name), one.tip]]))),
      tell(part, { quiet, isKnownTo }) {
        for (const attempt of attempts.values())
          attempt.tell(part, { quiet: quiet || speakerOf(attempt.name) === isKnownTo });
      },
      warn: (error) => closing.signal.aborted || warn(`${build.id} shares nothing new: ${error.message}`),
    });
    const kept = openKeptAttempts(build.id, { notes: store.notes, note: parts.note });
    const opened = { attempts, over: new Set<AttemptId>(), ending: new Set<Promise<void>>(), kept, shared, repository };
    builds.set(build.id, opened);
    return opened;
  };

  const become = async (build: WorkingBuild, item: AttemptWork) => {
    const { attempts, over, ending, ...opened } = open(build);
    if (item.answer !== null) opened.shared.changed("merges");
    const known = attempts.get(item.id);
    if (known !== undefined) return known.become(item);
    if (over.has(item.id)) return;
    const { gateway, workspaces, secrets } = parts;
    const world = {
      build,
      provider,
      gateway,
      workspaces,
      store,
      bridge,
      clock,
      warn,
      ...opened,
      secrets,
      closing: closing.signal,
    };
    const { agent, workers, checkpointMs } = await settingsOf(store, build.id);
    if (attempts.has(item.id)) return attempts.get(item.id)?.become(item);
    opened.shared.changed("plan");
    const kept = { ...opened.kept, write: (state: Kept) => opened.kept.write(state).catch(letGo) };
    const settled = () => Promise.all(ending);
    const own = { ...world, kept, agent, workers, checkpointMs, report: report(build.id), settled };
    const attempt = new Attempt(own, item);
    attempts.set(item.id, attempt);
    /** Another server drives the build: the attempt is its to go on with, and to report of. */
    const letGo = (error: unknown) => {
      if (hasCode(error, "lease_lost") && attempts.get(item.id) === attempt) {
        attempts.delete(item.id);
        // Whoever takes the build up again waits for it.
        const released: Promise<void> = attempt.release().finally(() => ending.delete(released));
        ending.add(released);
      }
      throw error;
    };
  };

  const end = (build: WorkingBuild, id: AttemptId, keep: boolean): Promise<void> => {
    const { attempts, over, ending } = open(build);
    over.add(id);
    const attempt = attempts.get(id);
    attempts.delete(id);
    const ended: Promise<void> = (attempt?.end({ keep }) ?? Promise.resolve()).finally(() => ending.delete(ended));
    ending.add(ended);
    return ended;
  };

  const carryOut = async (build: WorkingBuild, items: readonly WorkItem[]) => {
    for (const item of itemsFor("attempts", items)) {
      if (item.type === "attempt") await become(build, item);
      else void end(build, item.id, item.keepSandbox);
    }
  };

  /** Sandboxes, snapshots and files of attempts that are over. What the next attempt at a task goes on with stays. */
  const sweep = async (
    build: WorkingBuild,
    isWanted: (attempt: string) => boolean,
    isAwaited: (task: string) => boolean,
  ) => {
    for (const info of await provider.list({ labels: { build: build.id, purpose } })) {
      const { attempt = "", task = "" } = info.labels;
      if (isWanted(attempt)) continue;
      if (!isAwaited(task)) await removePlace({ provider }, info);
      else if (info.state === "running") await (await provider.get(info.id)).stop();
    }
    const prefix = `attempt ${build.id} `;
    const snapshots = (await provider.snapshots.list()).filter(
      ({ name }) => name?.startsWith(prefix) && !isWanted(name.slice(prefix.length)),
    );
    await removeSnapshots(
      provider,
      snapshots.map(({ id }) => id),
    );
    const { kept } = open(build);
    for (const id of await kept.list()) if (!isWanted(id)) await kept.remove(id);
  };

  return {
    async makeMain(build) {
      await open(build).repository();
    },

    canCarryOn: async (build) => !(await isMainElsewhere(store, repositories, build)),

    carryOut,

    async reattach(build, all) {
      const items = all.filter((item) => item.type === "attempt");
      const wanted = new Set<string>(items.map(({ id }) => id));
      const { attempts, ending } = open(build);
      const awaited = new Set(await tasksThatGoOn(store, build.id));
      const left = [...attempts].filter(([id]) => !wanted.has(id));
      await Promise.all(left.map(([id, { name }]) => end(build, id, awaited.has(name.task))));
      await Promise.all(ending);
      await sweep(
        build,
        (attempt) => wanted.has(attempt),
        (task) => awaited.has(task),
      );
      await carryOut(build, items);
    },

    async close(build) {
      const { attempts, ending, shared } = open(build);
      await Promise.all([...attempts.keys()].map((id) => end(build, id, false)));
      await Promise.all(ending);
      await shared[Symbol.asyncDispose]();
      await sweep(
        build,
        () => false,
        () => false,
      );
      // Nobody is left to read it.
      await bridge.forget(build.id);
      builds.delete(build.id);
    },

    heardAtMs(build, task, number) {
      for (const attempt of builds.get(build)?.attempts.values() ?? []) {
        if (attempt.name.task === task && attempt.name.number === number) return attempt.heardAtMs;
      }
      return undefined;
    },

    async mainMoved(build, commit) {
      const { attempts, shared } = open(build);
      shared.changed("plan");
      shared.changed("conflicts");
      shared.changed("merges");
      await Promise.all([...attempts.values()].map((attempt) => attempt.mainMoved(commit)));
    },

    async [Symbol.asyncDispose]() {
      closing.abort();
      for (const { attempts, ending, shared } of builds.values()) {
        const silent = shared[Symbol.asyncDispose]();
        await Promise.all([...attempts.values()].map((attempt) => attempt.release()));
        await Promise.all(ending);
        await silent;
      }
    },
  };
}

async function settingsOf({ builds }: Store, build: BuildId): Promise<BuildSettings> {
  const { settings } = (await builds.get(build)).details as { readonly settings?: unknown };
  return buildSettingsSchema.parse(settings ?? {});
}

/** Tasks whose next attempt, or the one that has just begun, goes on in the sandbox of the one before. */
async function tasksThatGoOn(store: Store, build: BuildId): Promise<string[]> {
  const tasks = await readAll(store, build, "tasks");
  return tasks.flatMap(({ id, status, details }) => {
    const { from } = (details["next"] ?? {}) as { readonly from?: string };
    return (status === "pending" || status === "assigned") && from === "last-attempt" ? [id] : [];
  });
}
