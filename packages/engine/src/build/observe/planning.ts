import { compareIds } from "@slipway/contract";
import type { ReportOf } from "../../ports/reports.ts";
import type { BuildRecords } from "../../ports/store.ts";
import { type BuildState, beginTask, type Planning, type Progress, timed } from "../state.ts";
import type { Known, NewRecord, Observed } from "./facts.ts";

/** What a stage before the first task made, or the user changed, counts while the build waits for it. */
export function observeStage(
  state: BuildState,
  fact: ReportOf<
    "intent.drafted" | "intent.edited" | "intent.released" | "intent.locked" | "plan.made" | "stage.failed"
  >,
  { build: { id: build }, start }: Known,
  nowMs: number,
): Observed {
  const { planning } = state;
  if (planning === null) return { state };
  const done = () => ({ ...state, planning: nextStage(planning) });
  switch (fact.type) {
    case "intent.drafted":
      if (planning.stage !== "draft") return { state };
      return { state: timed(done(), nowMs), records: [intentRecord(build, null, fact.data)] };
    case "intent.edited":
      if (planning.stage !== "lock" || planning.step !== "held") return { state };
      return { state, records: [intentRecord(build, null, { ...fact.data, start })] };
    case "intent.released":
      if (planning.stage !== "lock" || planning.step !== "held") return { state };
      return { state: timed({ ...state, planning: { ...planning, step: "due" } }, nowMs) };
    case "intent.locked": {
      if (planning.stage !== "lock") return { state };
      const { locked, checks } = fact.data;
      const intent = intentRecord(build, locked.hash, { locked, start });
      const proofs = Object.entries(Object.groupBy(checks.checks, ({ proves }) => proves));
      const made = proofs.map(([criterion, check]) => {
        const record = { build, criterion, intentHash: locked.hash, check: json(check) };
        return { kind: "checks", record } as const;
      });
      return { state: timed(done(), nowMs), records: [intent, ...made] };
    }
    case "plan.made": {
      if (planning.stage !== "plan") return { state };
      const { intentHash, tasks } = fact.data.plan;
      const wish = waitsAt(planning, "plan") && state.wish.kind === "run" ? pauseAt(nowMs) : state.wish;
      const begun = { ...state, wish, planning: null, tasks: tasks.map(beginTask) };
      return { state: begun, records: [{ kind: "plans", record: { build, round: 1, intentHash, tasks } }] };
    }
    case "stage.failed":
      return { state: { ...state, planning: stageFailed(state, planning, fact.data) } };
  }
}

/** The rounds after the last task: is the intent satisfied, and what is missing? */
export function observeRound(
  state: BuildState,
  fact: ReportOf<"satisfaction.checked" | "remaining.planned" | "remaining.refused" | "remaining.unplannable">,
  { build, intentHash }: Known,
): Observed {
  const { progress } = state;
  const { round } = fact.data;
  if (progress.round !== round) return { state };
  switch (fact.type) {
    case "satisfaction.checked":
      return progress.step === "checking" ? stepped(state, checked(progress, fact.data.unsatisfied)) : { state };
    case "remaining.planned": {
      if (!isPlanningRest(progress)) return { state };
      const tasks = [...state.tasks, ...fact.data.tasks.map(beginTask)];
      const record = { build: build.id, round: round + 1, intentHash, tasks: fact.data.tasks };
      const { state: next } = stepped({ ...state, tasks }, { step: "tasks", round: round + 1 });
      return { state: next, records: [{ kind: "plans", record }] };
    }
    case "remaining.refused":
      if (progress.step !== "planning") return { state };
      return stepped(state, { step: isOutdated(state, fact.data) ? "checked" : "refused" });
    case "remaining.unplannable":
      return isPlanningRest(progress) ? stepped(state, { step: "unplannable" }) : { state };
  }
}

function intentRecord(build: Known["build"]["id"], hash: string | null, intent: object): NewRecord {
  return { kind: "intents", record: { build, hash, intent: json(intent) } };
}

function nextStage(planning: Planning): Planning {
  const isDrafted = planning.stage === "draft";
  const step = isDrafted && waitsAt(planning, "intent") ? "held" : "due";
  return { ...planning, stage: isDrafted ? "lock" : "plan", step, round: 1 };
}

function stageFailed(state: BuildState, planning: Planning, failed: ReportOf<"stage.failed">["data"]): Planning {
  const { stage, round, code } = failed;
  if (planning.stage !== stage || planning.step !== "underway" || planning.round !== round) return planning;
  if (code !== "budget_exhausted") return { ...planning, step: "failed" };
  return isOutdated(state, failed) ? { ...planning, step: "due", round: round + 1 } : { ...planning, step: "refused" };
}

/** There is more money now than when it was refused. */
function isOutdated(
  { settings }: BuildState,
  { budgetMicroUsd }: Pick<ReportOf<"stage.failed">["data"], "budgetMicroUsd">,
): boolean {
  return budgetMicroUsd !== undefined && budgetMicroUsd < settings.budgetMicroUsd;
}

function waitsAt({ hold }: Planning, at: "intent" | "plan"): boolean {
  return hold === at || hold === "both";
}

function pauseAt(atMs: number): BuildState["wish"] {
  return { kind: "pause", atMs };
}

function stepped(state: BuildState, progress: Partial<Progress>): Observed {
  return { state: { ...state, progress: { ...state.progress, ...progress } } };
}

function checked(progress: Progress, found: readonly string[]): Partial<Progress> {
  const unsatisfied = found.toSorted(compareIds);
  const isUnchanged = unsatisfied.join() === progress.unsatisfied.join();
  return { step: "checked", unsatisfied, unchangedRounds: isUnchanged ? progress.unchangedRounds + 1 : 0 };
}

/**
 * Also while the build waits for money: a plan that was refused may have been asked for again before that was known.
 */
function isPlanningRest({ step }: Progress): boolean {
  return step === "planning" || step === "refused" || step === "checked";
}

function json(value: unknown): BuildRecords["intents"]["intent"] {
  return JSON.parse(JSON.stringify(value));
}
