import type { AttemptId, BuildId } from "@slipway/contract";
import {
  type Bridge,
  type NewEvent,
  type NoteWork,
  patternScope,
  type Store,
  type WorkingBuild,
} from "@slipway/engine";
import type { Gateway } from "@slipway/gateway";
import type { SandboxProvider } from "@slipway/sandbox";
import { readSource } from "../build-record.ts";
import type { BuildSecrets } from "../build-secrets.ts";
import type { Life } from "../compute/life.ts";
import type { Repositories } from "../repository/repositories.ts";
import type { BuildRepository } from "../repository/repository.ts";
import type { Workspaces } from "../workspaces/workspaces.ts";
import type { Attempt } from "./attempt.ts";
import { type KeptAttempts, openKeptAttempts } from "./kept.ts";
import { makeMain } from "./make-main.ts";
import { speakerOf } from "./names.ts";
import { createShared, type Shared, type SharedOptions } from "./shared/shared.ts";

export interface AttemptsParts {
  /** Must have the tool directories of all agents that builds may use. */
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
  /** Of the sandboxes of attempts. Left out: the usual one. */
  readonly life?: Life | undefined;
  readonly gatherMs?: SharedOptions["gatherMs"] | undefined;
  readonly warn: (message: string) => void;
}

/** The attempts of one build, and what they share. */
export interface OpenBuild {
  readonly attempts: Map<AttemptId, Attempt>;
  /** Ended attempts, so that late requests for them are ignored. */
  readonly over: Set<AttemptId>;
  /** Attempts that are still leaving their sandboxes. */
  readonly ending: Set<Promise<void>>;
  readonly kept: KeptAttempts;
  readonly shared: Shared;
  /** Makes main once; tries again after a failure. */
  repository(): Promise<BuildRepository>;
}

interface OpenBuildParts extends Omit<AttemptsParts, "report"> {
  /** Aborts when the server lets go of everything. */
  readonly signal: AbortSignal;
  report(events: readonly NewEvent[]): Promise<void>;
}

export function openBuild(parts: OpenBuildParts, build: WorkingBuild): OpenBuild {
  const { repositories, store, bridge, note, gatherMs, signal, report, warn } = parts;
  const attempts = new Map<AttemptId, Attempt>();
  let made: Promise<BuildRepository> | undefined;
  const make = async () => {
    const repository = await repositories.of(build.id);
    const source = () => readSource(store, build.id);
    await report([await makeMain({ ...parts, repository, source }, build)]);
    return repository;
  };
  const repository = () => {
    made ??= make().catch((error) => {
      made = undefined;
      throw error;
    });
    return made;
  };
  const shared = createShared({
    build: build.id,
    scope: patternScope(build),
    store,
    bridge,
    repository,
    ...(gatherMs && { gatherMs }),
    open: () =>
      new Map([...attempts.values()].flatMap((one) => (one.tip === null ? [] : [[speakerOf(one.name), one.tip]]))),
    tell(part, { quiet, isKnownTo }) {
      for (const attempt of attempts.values())
        attempt.tell(part, { quiet: quiet || speakerOf(attempt.name) === isKnownTo });
    },
    warn: (error) => signal.aborted || warn(`${build.id} cannot share news: ${error.message}`),
  });
  const kept = openKeptAttempts(build.id, store.notes, note);
  return { attempts, over: new Set(), ending: new Set(), kept, shared, repository };
}
