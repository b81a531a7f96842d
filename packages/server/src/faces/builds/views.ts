import {
  type AttemptView,
  type BuildSource,
  type BuildSummary,
  type BuildView,
  type EventView,
  evidenceViewSchema,
  type IntentView,
  lockedIntentSchema,
  openIntentSchema,
  type PlanView,
  SlipwayError,
  type TaskStatus,
  type TaskView,
  taskStatuses,
  topologicalOrder,
} from "@slipway/contract";
import {
  type AccountBalance,
  type AttemptRecord,
  type BuildEvent,
  type BuildState,
  criticalPath,
  type IntentRecord,
  type MergeQueue,
  type PlanRecord,
  partition,
  readState,
  type StoredBuild,
  type TaskRecord,
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

function countTasks(tasks: readonly TaskRecord[]): Record<TaskStatus, number> {
  const counts = Object.fromEntries(taskStatuses.map((status) => [status, 0])) as Record<TaskStatus, number>;
  for (const { status } of tasks) counts[status]++;
  return counts;
}

export interface ViewParts {
  readonly money: AccountBalance;
  readonly source: BuildSource | null;
  /** The last events, newest last. */
  readonly recent: readonly BuildEvent[];
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
  const { money, source, recent, checked, repository, isRepositoryMissing, remoteEnd } = parts;
  const state = readState(stored);
  const queue = queueOf(stored);
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
    attempts: stored.attempts.map((record) => attemptViewOf(record, state, recent)),
    sandboxes: stored.sandboxes.map(({ id, provider, status, config, tasks, costMicroUsd, createdAt, activeAt }) => ({
      id,
      provider,
      status,
      tasks,
      costMicroUsd,
      createdAt,
      activeAt,
      purpose: textOf(field(config, "purpose")) ?? "attempt",
    })),
    candidates: candidateViews(queue, stored.candidates),
    criteria: z.array(evidenceViewSchema).safeParse(checked?.data["evidence"]).data ?? [],
    main: queue?.main.commit ?? null,
    repository: queue === null ? null : repository,
    repositoryMissing: queue !== null && isRepositoryMissing,
    preview: parts.isNothingToShow ? null : previewOf(stored, parts.preview),
    nothingToShow: parts.isNothingToShow && stored.build.endedAt !== null ? noDevServer : null,
    ...remoteEnd,
  };
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
  const told = build.status === "cancelled" ? null : textOf(build.details["preview"]);
  if (open === undefined) return told;
  return told === null && build.status !== "succeeded" ? null : open;
}

function attemptViewOf(record: AttemptRecord, { attempts }: BuildState, recent: readonly BuildEvent[]): AttemptView {
  const { id, task, status, phase, sandbox, startedAt, heartbeatAt, details } = record;
  const number = Number(details["number"]);
  const said = recent.findLast(
    ({ type, data }) => type === "attempt.progress" && data["task"] === task && data["attempt"] === number,
  )?.data;
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
    phase: textOf(said?.["phase"]) ?? phase,
    doing: textOf(said?.["text"]),
  };
}

function textOf(value: Json): string | null {
  return typeof value === "string" && value !== "" ? value : null;
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

export function planViewOf({ build }: StoredBuild, state: BuildState, plans: readonly PlanRecord[]): PlanView {
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
    totals: { minutes: sum("minutes"), usd: sum("usd") },
  };
}

function readCriticalPath(tasks: PlanView["tasks"]): PlanView["criticalPath"] {
  const path = criticalPath(tasks);
  return { tasks: [...path.tasks], minutes: path.minutes };
}

type Data = BuildEvent["data"];

export function eventViewOf({ sequence, at, type, data }: BuildEvent): EventView {
  return { sequence, at, type, data: shownData[type]?.(data) ?? data };
}

/** Whole documents stay where they are asked for, and what the lock has compiled is for nobody's eyes. */
const shownData: Readonly<Record<string, (data: Data) => Data>> = {
  "intent.drafted": ({ open, start }) => ({ ...intentCounts(open), ...foundProblems(field(start, "diagnosis")) }),
  "intent.edited": ({ open }) => intentCounts(open),
  "intent.locked": ({ locked }) => ({ ...intentCounts(locked), hash: field(locked, "hash") }),
  "plan.made": ({ plan }) => ({ tasks: lengthOf(field(plan, "tasks")) }),
  "remaining.planned": ({ round, tasks }) => ({ round: round ?? null, tasks: lengthOf(tasks) }),
  "sandbox.changed": ({ sandbox }) => ({
    sandbox: field(sandbox, "id"),
    status: field(sandbox, "status"),
    reason: field(sandbox, "reason"),
  }),
  "checkpoint.made": ({ checkpoint }) => ({
    checkpoint: field(checkpoint, "id"),
    attempt: field(checkpoint, "attempt"),
  }),
};

type Json = Data[string] | undefined;

function intentCounts(record: Json): Data {
  const intent = field(record, "intent");
  return { criteria: lengthOf(field(intent, "criteria")), workflows: lengthOf(field(intent, "workflows")) };
}

/** By their titles: what shows them is long. */
function foundProblems(diagnosis: Json): Data {
  const problems = field(diagnosis, "problems");
  return Array.isArray(problems) ? { problems: problems.map((problem) => field(problem, "title")) } : {};
}

function field(value: Json, name: string): Data[string] {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return null;
  return value[name] ?? null;
}

function lengthOf(value: Json): number {
  return Array.isArray(value) ? value.length : 0;
}
