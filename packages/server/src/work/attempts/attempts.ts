import { type AttemptId, type BuildId, hasCode } from "@slipway/contract";
import {
  type AttemptWork,
  itemsFor,
  type NewEvent,
  type Work,
  type WorkItem,
  type WorkingBuild,
} from "@slipway/engine";
import { settingsOf } from "../build-record.ts";
import { whenDatabaseIsThere } from "../planning/patience.ts";
import { Attempt } from "./attempt.ts";
import type { Kept } from "./kept.ts";
import { sweepAttempts, tasksThatGoOn } from "./leave.ts";
import { isMainElsewhere } from "./make-main.ts";
import { type AttemptsParts, type OpenBuild, openBuild } from "./open-build.ts";

export interface Attempts extends Required<Work>, AsyncDisposable {
  /** Makes the build's main unless it exists. Fails with the reason, such as `repository_refused`. */
  makeMain(build: WorkingBuild): Promise<void>;
  /** Tells working attempts of a new main. */
  mainMoved(build: WorkingBuild, commit: string): Promise<void>;
}

const none: ReadonlySet<string> = new Set();

/** Runs attempts at tasks, by agents in sandboxes. Disposing it releases them: they continue, and another server finds them. */
export function createAttempts(parts: AttemptsParts): Attempts {
  const { provider, repositories, store, bridge } = parts;
  const builds = new Map<BuildId, OpenBuild>();
  const closing = new AbortController();

  const report = (build: BuildId) => (events: readonly NewEvent[]) =>
    whenDatabaseIsThere(() => parts.report(build, events), closing.signal);

  const open = (build: WorkingBuild): OpenBuild => {
    const opened =
      builds.get(build.id) ?? openBuild({ ...parts, report: report(build.id), signal: closing.signal }, build);
    builds.set(build.id, opened);
    return opened;
  };

  const become = async (build: WorkingBuild, item: AttemptWork) => {
    const { attempts, over, ending, ...opened } = open(build);
    if (item.answer !== null) opened.shared.changed("merges");
    const known = attempts.get(item.id);
    if (known !== undefined) return known.become(item);
    if (over.has(item.id)) return;
    const { agent, workers, checkpointMs } = settingsOf(await store.builds.get(build.id));
    if (attempts.has(item.id)) return attempts.get(item.id)?.become(item);
    opened.shared.changed("plan");
    const attempt = new Attempt(
      {
        ...parts,
        ...opened,
        build,
        agent,
        workers,
        checkpointMs,
        kept: { ...opened.kept, write: (state: Kept) => opened.kept.write(state).catch(letGo) },
        report: report(build.id),
        settled: () => Promise.all(ending),
        closing: closing.signal,
      },
      item,
    );
    attempts.set(item.id, attempt);
    /** Another server drives the build now and continues the attempt. */
    const letGo = (error: unknown) => {
      if (hasCode(error, "lease_lost") && attempts.get(item.id) === attempt) {
        attempts.delete(item.id);
        // A later takeover of the build waits for it.
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

  return {
    async makeMain(build) {
      await open(build).repository();
    },

    canCarryOn: async (build) => !(await isMainElsewhere(store, repositories, build)),

    carryOut,

    async reattach(build, all) {
      const items = all.filter((item) => item.type === "attempt");
      const wanted = new Set<string>(items.map(({ id }) => id));
      const { attempts, ending, kept } = open(build);
      const awaited = new Set(await tasksThatGoOn(store, build.id));
      const left = [...attempts].filter(([id]) => !wanted.has(id));
      await Promise.all(left.map(([id, { name }]) => end(build, id, awaited.has(name.task))));
      await Promise.all(ending);
      await sweepAttempts(provider, kept, build, { wanted, awaited });
      await carryOut(build, items);
    },

    async close(build) {
      const { attempts, ending, shared, kept } = open(build);
      await Promise.all([...attempts.keys()].map((id) => end(build, id, false)));
      await Promise.all(ending);
      await shared[Symbol.asyncDispose]();
      await sweepAttempts(provider, kept, build, { wanted: none, awaited: none });
      // No reader is left.
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
      for (const part of ["plan", "conflicts", "merges"] as const) shared.changed(part);
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
