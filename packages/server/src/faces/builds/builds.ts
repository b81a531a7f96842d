import { randomUUID } from "node:crypto";
import {
  type BuildId,
  type BuildSettings,
  type BuildView,
  buildSettingsSchema,
  type CostsView,
  hasCode,
  type InjectedSecret,
  newId,
  providerOf,
  SlipwayError,
} from "@slipway/contract";
import {
  type BuildEvent,
  type BuildOrder,
  type BuildRecord,
  costDimensions,
  decision,
  hasEnded,
  type NewEvent,
  newBuildDetails,
  order,
  readState,
  report,
  type Store,
  type StoredBuild,
} from "@slipway/engine";
import { readAll } from "../../work/all-records.ts";
import { queueOf, readSource } from "../../work/build-record.ts";
import type { BuildSecrets } from "../../work/build-secrets.ts";
import type { RemoteEnd } from "../../work/merging/remote.ts";
import { type Branches, createBuildBranches } from "./branches.ts";
import { createBuildDisputes } from "./disputes.ts";
import { createBuildEvents } from "./events.ts";
import { admitting, type BuildFace, type BuildMethods } from "./face.ts";
import { createBuildFiles, type Files } from "./files.ts";
import { createBuildIntents } from "./intents.ts";
import { mergeQueueViewOf } from "./merge-views.ts";
import type { News } from "./news.ts";
import { createBuildPreview, type PreviewParts } from "./preview.ts";
import { planViewOf, summaryOf, viewOf } from "./views.ts";

export interface BuildFaceParts {
  readonly store: Store;
  readonly clock: { now(): number };
  readonly news: News;
  /** What a build is set to where its user does not say. */
  readonly defaults: Partial<BuildSettings>;
  /** There is something new in the build: who drives it is woken, and one that nobody drives is taken up. */
  ring(build: BuildId): void;
  /** What sandboxes are of. */
  readonly provider: string;
  /** Fails for an agent that can not work here. Left out: all can. */
  readonly checkAgent?: ((agent: string) => Promise<void>) | undefined;
  readonly secrets: Pick<BuildSecrets, "keep" | "remove">;
  /** Where a build's repository is, once it has one. */
  repositoryOf(build: BuildId): string;
  /** Asked of builds that have one. Left out: it never is. */
  isRepositoryMissing?(build: BuildId): boolean;
  /** Left out: nothing is pushed. */
  remoteEndOf?(build: BuildId): Promise<RemoteEnd>;
  /** Undefined: sandboxes are of a kind that leaves nothing in it. */
  gitOf(build: BuildId): Promise<BuildGit | undefined>;
  readonly previews: PreviewParts["previews"];
  /** What a sandbox of a task costs. */
  usdPerMinute(gpu: string | undefined): number;
  /** How long an order waits for its effect. */
  readonly settleMs?: number;
}

/** What faces see of a build's repository. */
export type BuildGit = Branches & Files;

/** Among these is what the attempts have last said, but for one that has long been quiet. */
const recentEvents = 300;

/** How often those who wait look for what other processes have done. */
const pollMs = 500;

export function createBuildFace(parts: BuildFaceParts): BuildFace {
  return admitting(parts.store, createBuildMethods(parts));
}

function createBuildMethods(parts: BuildFaceParts): BuildMethods {
  const { store, clock, news, defaults, ring, provider, checkAgent, repositoryOf, gitOf, settleMs = 2000 } = parts;

  const view = async (build: BuildId): Promise<BuildView> => {
    const stored = await store.builds.state(build);
    const after = Math.max(0, stored.build.lastEvent - recentEvents);
    const recent = await store.events.read(build, after, { limit: recentEvents });
    return viewOf(stored, {
      money: await store.ledger.balance(build),
      source: await readSource(store, build),
      said: recent.filter(({ type }) => type === "attempt.progress"),
      checked: await findCheck(store, stored),
      repository: repositoryOf(build),
      isRepositoryMissing: parts.isRepositoryMissing?.(build) ?? false,
      preview: await parts.previews()?.addressOf(build),
      isNothingToShow: (await parts.previews()?.isNothing(build)) ?? false,
      remoteEnd: (await parts.remoteEndOf?.(build)) ?? { pullRequest: null, remoteFailure: null, result: null },
    });
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
      const [next] = await store.events.read(build, record.appliedThrough, { source: "report", limit: 1 });
      if (next === undefined || next.sequence > sequence || hasEnded(record)) return;
      await listening.next(pollMs, limit);
    }
  };

  const obey = async (build: BuildId, given: BuildOrder, key: string = randomUUID()): Promise<BuildView> => {
    const state = readState(await store.builds.state(build));
    const { spentMicroUsd } = await store.ledger.balance(build);
    order({ ...state, spentMicroUsd: Math.max(state.spentMicroUsd, spentMicroUsd) }, given, clock.now());
    await tell(build, report(given.type, `${given.type}:${key}`, given.data));
    return await view(build);
  };

  /** Kept first: whoever drives the build finds them. A build that is there already has its own. */
  const withSecrets = async (build: BuildId, secrets: readonly InjectedSecret[], create: () => Promise<unknown>) => {
    if (secrets.length === 0 || (await find(store, build))) return await create();
    await parts.secrets.keep(build, secrets);
    try {
      return await create();
    } catch (error) {
      if (!(await find(store, build))) await parts.secrets.remove(build);
      throw error;
    }
  };

  const intents = createBuildIntents({ store, tell });

  return {
    async start(
      { account },
      { id = newId("bld", clock.now()), request, mode, source, project, settings, hold, secrets, ...wanted },
    ) {
      if (wanted.buildMode !== undefined && providerOf(wanted.buildMode) !== provider) {
        const message = `buildMode: this server was started with SANDBOX_PROVIDER ${provider}, not ${wanted.buildMode}.`;
        throw new SlipwayError("provider_mismatch", message);
      }
      const chosen = buildSettingsSchema.parse({ ...defaults, ...settings });
      await checkAgent?.(chosen.agent);
      const details = newBuildDetails(chosen, hold, clock.now());
      const build = { id, account, project, mode, request, priority: chosen.priority, details };
      const created = decision("build.created", { mode, hold, source }, "build.created");
      const { budgetMicroUsd } = chosen;
      await withSecrets(id, secrets, () => store.builds.create(build, budgetMicroUsd, created));
      ring(id);
      return await view(id);
    },

    get: view,

    async list({ account }, { status, project, before, limit }) {
      const records = await store.builds.list({
        account,
        limit: limit + 1,
        ...(status !== undefined && { statuses: status }),
        ...(project !== undefined && { project }),
        ...(before !== undefined && { before }),
      });
      const builds = [];
      for (const build of records.slice(0, limit)) {
        const tasks = await readAll(store, build.id, "tasks");
        builds.push(summaryOf({ build, tasks }, await store.ledger.balance(build.id)));
      }
      return { builds, next: records.length > limit ? (builds.at(-1)?.id ?? null) : null };
    },

    pause: (build, key) => obey(build, { type: "order.pause", data: {} }, key),
    resume: (build, key) => obey(build, { type: "order.resume", data: {} }, key),
    cancel: (build, key) => obey(build, { type: "order.cancel", data: {} }, key),
    setBudget: (build, wanted, key) => obey(build, { type: "order.budget", data: wanted }, key),

    intent: intents.intent,
    editIntent: intents.editIntent,
    async lock(build) {
      await intents.release(build);
      return await view(build);
    },

    async plan(build) {
      const stored = await store.builds.state(build);
      return planViewOf(stored, readState(stored), await store.builds.records(build, "plans"), parts.usdPerMinute);
    },

    async costs(build) {
      const { budgetMicroUsd, spentMicroUsd, reservedMicroUsd } = await requireBalance(store, build);
      const by = await Promise.all(
        costDimensions.map(async (dimension) => [dimension, await store.ledger.costs(build, dimension)] as const),
      );
      const money = { budgetMicroUsd, spentMicroUsd, reservedMicroUsd };
      return { money, by: Object.fromEntries(by) as unknown as CostsView["by"] };
    },

    async mergeQueue(build) {
      const stored = await store.builds.state(build);
      return mergeQueueViewOf(queueOf(stored), {
        candidates: stored.candidates,
        merges: await readAll(store, build, "merges"),
        gateResults: await readAll(store, build, "gateResults"),
      });
    },

    ...createBuildDisputes({ store, tell }),
    ...createBuildBranches({ store, repositoryOf, branchesOf: gitOf }),
    ...createBuildPreview({ store, previews: parts.previews, mainOf: gitOf, repositoryOf }),
    ...createBuildFiles({ store, filesOf: gitOf }),
    ...createBuildEvents(store, news, pollMs),
  };
}

export async function isUnderway(store: Store, build: BuildId): Promise<boolean> {
  const found = await find(store, build);
  return found !== undefined && !hasEnded(found);
}

async function find({ builds }: Store, build: BuildId): Promise<BuildRecord | undefined> {
  try {
    return await builds.get(build);
  } catch (error) {
    if (hasCode(error, "build_not_found")) return undefined;
    throw error;
  }
}

/** Of this round, or of the one before while this one is not checked yet. */
async function findCheck({ events }: Store, stored: StoredBuild): Promise<BuildEvent | undefined> {
  const { round } = readState(stored).progress;
  const find = (of: number) => events.find(stored.build.id, `satisfaction.checked:${of}`);
  return (await find(round)) ?? (round > 1 ? await find(round - 1) : undefined);
}

async function requireBalance(store: Store, build: BuildId) {
  await store.builds.get(build);
  return await store.ledger.balance(build);
}
