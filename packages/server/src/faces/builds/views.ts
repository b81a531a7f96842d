import {
  type AttemptView,
  attemptsAfter,
  type BuildSource,
  type BuildSummary,
  type BuildView,
  countTasks,
  decisionSchemas,
  type EventView,
  eventViewSchema,
  type Intent,
  type IntentView,
  lockedIntentSchema,
  openIntentSchema,
  type PlanView,
  SlipwayError,
  type TaskView,
  topologicalOrder,
} from "@slipway/contract";
import {
  type AccountBalance,
  type AttemptRecord,
  type BuildEvent,
  type BuildState,
  criticalPath,
  forecastCompute,
  type IntentRecord,
  type MergeQueue,
  type PlanRecord,
  partition,
  type Report,
  readReport,
  readState,
  type StoredBuild,
} from "@slipway/engine";
import { z } from "zod";
import { queueOf } from "../../work/build-record.ts";
import type { RemoteEnd } from "../../work/merging/remote.ts";
import { noDevServer } from "../../work/preview/instead.ts";
import { candidateViews } from "./merge-views.ts";
import { refusedOf } from "./refusals.ts";

/** What users see of what the store keeps. */
export function summaryOf({ build, tasks }: Pick<StoredBuild, "build" | "tasks">, money: AccountBalance): BuildSummary {
  const { id, project, mode, request, status, reason, createdAt, updatedAt, endedAt, lastEvent } = build;
  const head = { id, project, mode, request, status, reason };
  const { budgetMicroUsd, spentMicroUsd, reservedMicroUsd } = money;
  return {
    ...head,
    tasks: countTasks(tasks),
    money: { budgetMicroUsd, spentMicroUsd, reservedMicroUsd },
    createdAt,
    updatedAt,
    endedAt,
    lastEvent,
  };
}

export interface ViewParts {
  readonly money: AccountBalance;
  readonly source: BuildSource | null;
  /** What attempts have last said, newest last. */
  readonly said: readonly BuildEvent[];
  /** The event that tells of the last check of the whole. */
  readonly checked: BuildEvent | undefined;
  readonly repository: string;
  readonly isRepositoryMissing: boolean;
  /** Null: it is closed. Undefined: where it was last told to be. */
  readonly preview: string | null | undefined;
  /** Main has no dev server. */
  readonly isNothingToShow: boolean;
  readonly remoteEnd: RemoteEnd;
}

export function viewOf(stored: StoredBuild, parts: ViewParts): BuildView {
  const { money, source, checked, repository, isRepositoryMissing, remoteEnd } = parts;
  const state = readState(stored);
  const queue = queueOf(stored);
  const check = checked && readReport(checked);
  return {
    ...summaryOf(stored, money),
    settings: state.settings,
    source,
    planning: state.planning && planningOf(state.planning),
    taskList: (topologicalOrder(stored.tasks) ?? stored.tasks).map(
      ({ id, status, component, attempts, level, reason }) => ({
        id,
        status,
        component,
        attempts,
        level,
        reason,
        ...refusedPart(state, queue, id),
      }),
    ),
    attempts: parts.said.map(eventViewOf).reduce(
      attemptsAfter,
      stored.attempts.map((record) => attemptViewOf(record, state)),
    ),
    sandboxes: stored.sandboxes.map(({ id, provider, status, config, tasks, costMicroUsd, createdAt, activeAt }) => ({
      id,
      provider,
      status,
      tasks,
      costMicroUsd,
      createdAt,
      activeAt,
      purpose: purposeSchema.safeParse(config).data?.purpose ?? "attempt",
    })),
    candidates: candidateViews(queue, stored.candidates),
    criteria: check?.type === "satisfaction.checked" ? check.data.evidence : [],
    disputes: waitingDisputes(queue),
    main: queue?.main.commit ?? null,
    repository: queue === null ? null : repository,
    repositoryMissing: queue !== null && isRepositoryMissing,
    preview: parts.isNothingToShow ? null : previewOf(stored, parts.preview),
    nothingToShow: parts.isNothingToShow && stored.build.endedAt !== null ? noDevServer : null,
    ...remoteEnd,
  };
}

function waitingDisputes(queue: MergeQueue | null): BuildView["disputes"][number][] {
  const waiting = queue?.disputes.filter(({ status }) => status === "user") ?? [];
  return waiting.map(({ number, at: { criterion } }) => ({ number, criterion }));
}

function refusedPart(state: BuildState, queue: MergeQueue | null, id: string): Pick<TaskView, "refused"> {
  const refused = refusedOf(state, queue, id);
  return refused === undefined ? {} : { refused };
}

/**
 * A build that is cancelled takes it along. It has nothing to show before it was told of; one that has succeeded is not told of
 * it any more, and its main was seen.
 */
function previewOf({ build }: StoredBuild, open: string | null | undefined): string | null {
  const told = build.status === "cancelled" ? null : (toldSchema.safeParse(build.details).data?.preview ?? null);
  if (open === undefined) return told;
  return told === null && build.status !== "succeeded" ? null : open;
}

/** What the records of a build and a sandbox keep as JSON. */
const toldSchema = z.object({ preview: z.string().min(1).nullable() });
const purposeSchema = z.object({ purpose: z.string().min(1) });

function attemptViewOf(record: AttemptRecord, { attempts }: BuildState): AttemptView {
  const { id, task, status, phase, sandbox, startedAt, heartbeatAt, details } = record;
  const number = Number(details["number"]);
  const level = attempts.find((attempt) => attempt.task === task && attempt.number === number)?.level ?? null;
  return {
    id,
    task,
    number,
    status,
    sandbox,
    level,
    startedAt,
    heartbeatAt,
    phase,
    doing: null,
  };
}

function planningOf({ stage, step, hold }: NonNullable<BuildState["planning"]>): BuildView["planning"] {
  return { stage, step, hold };
}

export function intentViewOf(record: IntentRecord | undefined): IntentView {
  if (record === undefined) throw new SlipwayError("not_ready", "the intent is not drafted yet");
  const { open, locked } = record.intent as { readonly open?: unknown; readonly locked?: unknown };
  if (record.hash === null) return { ...openIntentSchema.parse(open), hash: null, lockedAtMs: null };
  return lockedIntentSchema.parse(locked);
}

export function planViewOf(
  { build }: StoredBuild,
  state: BuildState,
  plans: readonly PlanRecord[],
  usdPerMinute: (gpu: string | undefined) => number,
): PlanView {
  const last = plans.at(-1);
  if (last === undefined) throw new SlipwayError("not_ready", "there is no plan yet");
  const all = plans.flatMap(({ tasks }) => tasks);
  const tasks = [...(topologicalOrder(all) ?? all)];
  const sum = (of: "minutes" | "usd") => tasks.reduce((total, { estimate }) => total + estimate[of], 0);
  const by = state.settings.partition;
  return {
    mode: build.mode,
    intentHash: last.intentHash as PlanView["intentHash"],
    round: last.round,
    tasks,
    partition: by,
    parts: partition(tasks, by).map((part) => ({ name: part.name, tasks: [...part.tasks] })),
    criticalPath: readCriticalPath(tasks),
    totals: { minutes: sum("minutes"), usd: sum("usd"), computeUsd: forecastCompute(tasks, usdPerMinute) },
  };
}

function readCriticalPath(tasks: PlanView["tasks"]): PlanView["criticalPath"] {
  const path = criticalPath(tasks);
  return { tasks: [...path.tasks], minutes: path.minutes };
}

/** An event as clients see it: whole documents stay on their own routes, and nobody sees what the lock has compiled. */
export function eventViewOf({ sequence, at, type, data }: BuildEvent): EventView {
  const report = readReport({ type, data });
  // An event of another version may carry a document: its data is not shown.
  const shown =
    report === undefined && !(type in decisionSchemas) ? {} : ((report && withoutDocuments(report)) ?? data);
  return eventViewSchema.parse({ sequence, at, type, data: shown });
}

/** Undefined for a report without documents. */
function withoutDocuments({ type, data }: Report): object | undefined {
  switch (type) {
    case "intent.drafted":
      return { ...countsOf(data.open), ...startSchema.safeParse(data.start).data };
    case "intent.edited":
      return countsOf(data.open);
    case "intent.locked":
      return { ...countsOf(data.locked), hash: data.locked.hash };
    case "plan.made":
      return { tasks: data.plan.tasks.length };
    case "remaining.planned":
      return { round: data.round, tasks: data.tasks.length };
    case "sandbox.changed":
      return { sandbox: data.sandbox.id, status: data.sandbox.status, reason: data.sandbox.reason };
    case "dispute.settled": {
      const { replacement, ...told } = data;
      return { ...told, replaced: replacement !== null };
    }
    case "checkpoint.made":
      return { checkpoint: data.checkpoint.id, attempt: data.checkpoint.attempt };
    default:
      return undefined;
  }
}

function countsOf({ intent }: { readonly intent: Intent }) {
  return { criteria: intent.criteria.length, workflows: intent.workflows.length };
}

/** What a draft began with, where a diagnosis looked at the repository. Problems are told by their titles. */
const startSchema = z
  .object({ diagnosis: z.object({ problems: z.array(z.object({ title: z.string() })) }) })
  .transform(({ diagnosis }) => ({ problems: diagnosis.problems.map(({ title }) => title) }));
