import { afterEnd, type BuildId, type End, endAs } from "@slipway/contract";
import { between, draw, logNormal, type Range } from "./chance.ts";

/** Describes a simulated world. The same settings give the same world. */
export interface SimulationSettings {
  readonly seed: number;
  /** Per plan. */
  readonly tasks: Range;
  /** That a task depends on a given earlier one. */
  readonly edgeProbability: number;
  readonly estimateMinutes: Range;
  /** Median duration of an attempt relative to its estimate. */
  readonly pace: number;
  /** Log-normal spread of the estimates. */
  readonly sigma: number;
  /** Per attempt. */
  readonly steps: Range;
  readonly stepMicroUsd: Range;
  /** From ordering a sandbox to the first sign of its runner. */
  readonly startMs: Range;
  /** Duration of a stage, a satisfaction check or a remaining plan. */
  readonly stageMs: Range;
  /** Plans per build: after the last one everything is satisfied. */
  readonly rounds: number;
  /** How long a sandbox lives until its work is handed over to its next life, and how long that takes. Left out: for ever. */
  readonly life?: { readonly lifetimeMs: number; readonly handoverMs: number };
  readonly shares: Shares;
}

export interface Shares {
  /** Of attempts; the others are merged. */
  readonly failed: number;
  readonly interrupted: number;
  /** Of sandboxes that die, or disappear unnoticed. */
  readonly died: number;
  readonly lost: number;
  /** Of attempts that are merged after a failed one and report the fix. */
  readonly fixed: number;
  /** Of criteria, after each round but the last. */
  readonly unsatisfied: number;
  /** Of remaining plans. */
  readonly unplannable: number;
}

export const usualWorld: SimulationSettings = {
  seed: 1,
  tasks: [6, 12],
  edgeProbability: 0.2,
  estimateMinutes: [1, 60],
  pace: 1,
  sigma: 0.7,
  steps: [2, 6],
  stepMicroUsd: [1_000, 50_000],
  startMs: [0, 0],
  stageMs: [1_000, 20_000],
  rounds: 1,
  shares: { failed: 0, interrupted: 0, died: 0, lost: 0, fixed: 0, unsatisfied: 0, unplannable: 0 },
};

export interface AttemptName {
  readonly build: BuildId;
  readonly task: string;
  /** From 1, per task. */
  readonly number: number;
}

/** The course of an attempt that nothing interferes with. */
export interface Fate {
  readonly steps: number;
  readonly stepMs: number;
  readonly end: End;
  /** The fix of the task's earlier error. */
  readonly fix: string | undefined;
}

/** Few kinds, so that errors repeat. */
const errorKinds = 6;

export function fateOf(settings: SimulationSettings, name: AttemptName): Fate {
  const { seed, pace, sigma, shares } = settings;
  const of = (what: string) => draw(seed, name.build, name.task, name.number, what);
  const planned = between(settings.steps, of("steps"));
  const wholeMs = estimateOf(settings, name) * 60_000 * pace * logNormal(sigma, of("luck"), of("more-luck"));
  const end = endOf(shares, of);
  // An interruption comes before the last step ends.
  const steps = afterEnd(end) === "wait" ? between([1, planned], of("interruption")) : planned;
  const isFix = end.reason === "merged" && name.number > 1 && of("fix") < shares.fixed;
  const fix = isFix ? `mend ${errorOf(of)}` : undefined;
  return { steps, stepMs: Math.max(1, Math.round(wholeMs / planned)), end, fix };
}

function endOf({ failed, interrupted }: Shares, of: (what: string) => number): End {
  const drawn = of("outcome");
  if (drawn < failed) return endAs("checks_failed", errorOf(of));
  return endAs(drawn < failed + interrupted ? "unavailable" : "merged");
}

function errorOf(of: (what: string) => number): string {
  return `TypeError: of kind ${"abcdefgh"[Math.floor(of("error") * errorKinds)]}`;
}

/** In minutes. */
export function estimateOf(
  { seed, estimateMinutes }: SimulationSettings,
  { build, task }: Omit<AttemptName, "number">,
) {
  return between(estimateMinutes, draw(seed, build, task, "estimate"));
}

export function stepMicroUsdOf({ seed, stepMicroUsd }: SimulationSettings, name: AttemptName, step: number): number {
  return between(stepMicroUsd, draw(seed, name.build, name.task, name.number, step, "cost"));
}

export type Death = "died" | "lost";

/** The step in whose middle the sandbox ends by itself, if any. */
export function deathOf(
  { seed, shares }: SimulationSettings,
  { build, task, number }: AttemptName,
  { respawn, steps }: { readonly respawn: number; readonly steps: number },
): { readonly step: number; readonly as: Death } | undefined {
  const of = (what: string) => draw(seed, build, task, number, respawn, what);
  const drawn = of("death");
  if (drawn >= shares.died + shares.lost) return undefined;
  return { step: between([1, steps], of("death-step")), as: drawn < shares.died ? "died" : "lost" };
}

/** The criteria that a round leaves unsatisfied. */
export function unsatisfiedOf(
  { seed, rounds, shares }: SimulationSettings,
  build: BuildId,
  round: number,
  criteria: readonly string[],
): readonly string[] {
  if (round >= rounds) return [];
  return criteria.filter((id) => draw(seed, build, round, id, "unsatisfied") < shares.unsatisfied);
}

export function isPlannable({ seed, shares }: SimulationSettings, build: BuildId, round: number): boolean {
  return draw(seed, build, round, "unplannable") >= shares.unplannable;
}

export function startMsOf({ seed, startMs }: SimulationSettings, { build, task, number }: AttemptName): number {
  return between(startMs, draw(seed, build, task, number, "start"));
}

export function stageMsOf({ seed, stageMs }: SimulationSettings, build: BuildId, stage: string): number {
  return between(stageMs, draw(seed, build, stage, "duration"));
}
