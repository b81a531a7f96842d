import { afterEnd, type BuildId, endAs, endText, SlipwayError } from "@slipway/contract";
import type { SettledOffer } from "../ports/merging.ts";
import type { Report } from "../ports/reports.ts";
import type { BuildRecords, RecordKind, Store, StoredBuild } from "../ports/store.ts";
import { fingerprint } from "./fingerprint.ts";
import { type Observation, observe } from "./observe.ts";
import { type BuildOrder, order } from "./orders.ts";
import type { AttemptState, BuildState, Outcome } from "./state.ts";

export type Records = { -readonly [K in RecordKind]?: BuildRecords[K][] };

/** What is known after some reports. */
export interface Intake {
  readonly state: BuildState;
  /** What they tell that is kept beside the state. */
  readonly records: Records;
  /** The sandbox and the run of an attempt, by the attempt's name. */
  readonly places: ReadonlyMap<string, Place>;
}

export type Place = Pick<BuildRecords["attempts"], "sandbox" | "run">;

/** Names an attempt within its build. */
export function attemptName(task: string, number: number): string {
  return `${task}#${number}`;
}

interface Outcomes {
  readonly store: Store;
  readonly stored: StoredBuild;
  readonly nowMs: number;
}

interface Told extends Outcomes {
  readonly records: Records;
  readonly places: Map<string, Place>;
}

/** Takes reports in, in their order. What does not make sense, or comes too late, changes nothing. */
export async function takeReports(
  store: Store,
  stored: StoredBuild,
  state: BuildState,
  reports: readonly Report[],
  nowMs: number,
): Promise<Intake> {
  const told: Told = { store, stored, records: {}, places: new Map(), nowMs };
  let current = state;
  for (const report of reports) current = await take(told, current, report);
  return { state: current, records: told.records, places: told.places };
}

async function take(told: Told, state: BuildState, report: Report): Promise<BuildState> {
  const { nowMs } = told;
  const see = (observation: Observation) => observe(state, observation, nowMs);
  switch (report.type) {
    case "order.pause":
    case "order.resume":
    case "order.cancel":
      return obey(state, { type: orderTypes[report.type] }, nowMs);
    case "order.budget":
      return obey(state, { type: "set-budget", ...report.data }, nowMs);
    case "intent.released":
      return see({ type: "intent-released" });
    case "intent.drafted":
    case "intent.edited":
    case "intent.locked":
    case "plan.made":
      return takeStage(told, state, report);
    case "stage.failed":
      return see({ type: "stage-failed", ...report.data });
    case "attempt.heard": {
      const { task, attempt, respawn, sandbox = null, run = null } = report.data;
      if (isOfAnotherLife(state, { task, attempt, respawn })) return state;
      told.places.set(attemptName(task, attempt), { sandbox, run });
      return see({ type: "attempt-heard", task, attempt });
    }
    case "attempt.offered":
      return isOfAnotherLife(state, report.data) ? state : see({ type: "attempt-offered", ...report.data });
    case "attempt.ended":
      return takeEnd(told, state, report.data);
    case "sandbox.changed":
      if (report.data.sandbox.build === told.stored.build.id) keep(told, "sandboxes", report.data.sandbox);
      return state;
    case "checkpoint.made":
      if (report.data.checkpoint.build === told.stored.build.id) keep(told, "checkpoints", report.data.checkpoint);
      return state;
    case "candidate.offered": {
      const { task, attempt, respawn, offer } = report.data;
      if (isOfAnotherLife(state, { task, attempt, respawn })) return state;
      return see({ type: "attempt-offered", task, attempt, offer });
    }
    case "candidate.refused": {
      const { task, attempt, respawn, offer, findings } = report.data;
      if (isOfAnotherLife(state, { task, attempt, respawn })) return state;
      return await takeSettled(told, state, {
        type: "returned",
        task,
        attempt,
        offer,
        findings,
        main: null,
        unchanged: false,
      });
    }
    case "satisfaction.checked":
      return see({ type: "satisfaction-checked", ...report.data });
    case "remaining.planned":
      return takeRemaining(told, state, report.data);
    case "remaining.refused":
      return see({ type: "remaining-refused", ...report.data });
    case "remaining.unplannable":
      return see({ type: "remaining-unplannable", round: report.data.round });
    // The merge queue's, and what is only told.
    case "attempt.progress":
    case "main.made":
    case "merge.tested":
    case "gate.ended":
    case "merge.ended":
    case "preview.ready":
    case "preview.failed":
    case "remote.pushed":
    case "remote.failed":
      return state;
  }
}

interface Life {
  readonly task: string;
  readonly attempt: number;
  readonly respawn?: number | undefined;
}

/** What followed from the end of an earlier life is decided. */
function isOfAnotherLife({ attempts }: BuildState, { task, attempt, respawn }: Life): boolean {
  const current = attempts.find((one) => one.task === task && one.number === attempt);
  return current === undefined || (respawn !== undefined && current.respawns !== respawn);
}

const orderTypes = { "order.pause": "pause", "order.resume": "resume", "order.cancel": "cancel" } as const;

/** What can not be obeyed was refused when it was given, or has come too late. */
function obey(state: BuildState, given: BuildOrder, nowMs: number): BuildState {
  try {
    return order(state, given, nowMs);
  } catch (error) {
    if (error instanceof SlipwayError) return state;
    throw error;
  }
}

type StageReport = Extract<Report, { type: "intent.drafted" | "intent.edited" | "intent.locked" | "plan.made" }>;

/** What a stage made counts while the build waits for it. */
async function takeStage(told: Told, state: BuildState, report: StageReport): Promise<BuildState> {
  const build = told.stored.build.id;
  const stage = state.planning?.stage;
  const see = (observation: Observation) => observe(state, observation, told.nowMs);
  switch (report.type) {
    case "intent.drafted":
      if (stage !== "draft") return state;
      keep(told, "intents", { build, hash: null, intent: json(report.data) });
      return see({ type: "stage-done", stage });
    case "intent.edited":
      if (stage === "lock" && state.planning?.step === "held") await keepIntent(told, null, report.data);
      return state;
    case "intent.locked": {
      if (stage !== "lock") return state;
      const { locked, checks } = report.data;
      await keepIntent(told, locked.hash, { locked });
      for (const [criterion, check] of Object.entries(Object.groupBy(checks.checks, ({ proves }) => proves))) {
        keep(told, "checks", { build, criterion, intentHash: locked.hash, check: json(check) });
      }
      return see({ type: "stage-done", stage });
    }
    case "plan.made": {
      if (stage !== "plan") return state;
      const { intentHash, tasks } = report.data.plan;
      keep(told, "plans", { build, round: 1, intentHash, tasks });
      return see({ type: "planned", tasks });
    }
  }
}

/** With what there was before the build, which is in the record already. */
async function keepIntent(told: Told, hash: string | null, intent: object): Promise<void> {
  const build = told.stored.build.id;
  const known = told.records.intents?.at(-1) ?? (await told.store.builds.records(build, "intents"))[0];
  const { start } = (known?.intent ?? {}) as { start?: BuildRecords["intents"]["intent"] };
  keep(told, "intents", { build, hash, intent: json({ ...intent, start }) });
}

type EndReport = Extract<Report, { type: "attempt.ended" }>["data"];

async function takeEnd(
  told: Told,
  state: BuildState,
  { task, attempt, respawn, end, budgetMicroUsd, fix }: EndReport,
): Promise<BuildState> {
  const ended = state.attempts.find((one) => one.task === task && one.number === attempt);
  if (ended === undefined || ended.respawns !== respawn) return state;
  return await endAttempt(told, state, ended, { ...end, budgetMicroUsd }, fix);
}

/** How often an attempt may work over what it offered: then another way is tried. */
const maxReturns = 6;

/** What became of an attempt's offer. */
export async function takeSettled(told: Outcomes, state: BuildState, settled: SettledOffer): Promise<BuildState> {
  const { task, attempt, offer } = settled;
  const owner = state.attempts.find((one) => one.task === task && one.number === attempt);
  if (owner === undefined) return state;
  if (settled.type === "merged") return await endAttempt(told, state, owner, endAs("merged"), settled.fix);
  if (settled.type === "satisfied")
    return await endAttempt(told, state, owner, { ...endAs("satisfied"), main: settled.main });
  const { findings, main, unchanged } = settled;
  const answer = { offer, findings, main, unchanged };
  const back = observe(state, { type: "attempt-returned", task, attempt, answer }, told.nowMs);
  // Who was told that nothing has changed, and changes nothing, would go on like that.
  const goesOn = owner.returns + 1 < maxReturns && !(unchanged && owner.answer?.unchanged);
  if (goesOn) return back;
  const words = findings.map(({ gate, text }) => `${gate}: ${text}`).join("\n");
  return await endAttempt(told, back, owner, endAs("returned_too_often", words));
}

/** `fix`: what mended the error that the task had before. */
async function endAttempt(
  { store, stored, nowMs }: Outcomes,
  state: BuildState,
  { task, number }: AttemptState,
  outcome: Outcome,
  fix?: string,
): Promise<BuildState> {
  const project = patternScope(stored.build);
  const isFailed = afterEnd(outcome) === "retry";
  const [known] = isFailed ? await store.patterns.find(project, [fingerprint(endText(outcome))]) : [];
  const mended = state.tasks.find(({ id }) => id === task)?.failures.at(-1);
  const record = stored.attempts.find((one) => one.task === task && one.details["number"] === number);
  if (outcome.reason === "merged" && mended !== undefined && record !== undefined && fix !== undefined) {
    const learnt = { project, signature: mended.error, error: mended.error, fix };
    await store.patterns.learn({ ...learnt, attempt: record.id, learntAt: nowMs }).catch(passOver);
  }
  const pattern = known?.signature;
  return observe(state, { type: "attempt-ended", task, attempt: number, outcome: { ...outcome, pattern } }, nowMs);
}

/** Whom fixes are remembered for: a project's name says nothing without its owner. */
export function patternScope({ account, project }: { readonly account: string; readonly project: string }): string {
  return `${account}/${project}`.slice(0, 256);
}

/** A pattern that can not be kept is no reason to stop a build. */
function passOver(error: unknown): void {
  if (!(error instanceof SlipwayError && error.code === "invalid_request")) throw error;
}

async function takeRemaining(
  told: Told,
  state: BuildState,
  { round, tasks }: Extract<Report, { type: "remaining.planned" }>["data"],
): Promise<BuildState> {
  const planned = observe(state, { type: "remaining-planned", round, tasks }, told.nowMs);
  if (planned === state) return state;
  const build: BuildId = told.stored.build.id;
  const [first] = await told.store.builds.records(build, "plans", { limit: 1 });
  keep(told, "plans", { build, round: round + 1, intentHash: first?.intentHash ?? "unknown", tasks });
  return planned;
}

/** Of what has the same key the last one counts. */
function keep<K extends RecordKind>({ records }: Told, kind: K, record: BuildRecords[K]): void {
  const kept = (records[kind] ?? []) as BuildRecords[K][];
  const id = "id" in record ? record.id : undefined;
  const others = kind === "intents" ? [] : kept.filter((one) => id === undefined || !("id" in one) || one.id !== id);
  Object.assign(records, { [kind]: [...others, record] });
}

function json<T>(value: T): BuildRecords["intents"]["intent"] {
  return JSON.parse(JSON.stringify(value));
}
