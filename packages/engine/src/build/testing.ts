import { type BuildSettingsInput, buildSettingsSchema, endAs, type Task } from "@slipway/contract";
import { applyActions } from "./apply.ts";
import { decide } from "./decide.ts";
import { type Observation, observe } from "./observe.ts";
import { type BuildState, beginBuild, type Outcome } from "./state.ts";

export function task(id: string, dependencies: readonly string[] = [], minutes = 10): Task {
  return {
    id,
    title: id,
    description: id,
    component: "app",
    features: ["app"],
    dependencies: [...dependencies],
    expectedFiles: [],
    estimate: { minutes, usd: 1 },
    criteria: [],
  };
}

export function begin(tasks: readonly Task[], settings: BuildSettingsInput = {}): BuildState {
  return beginBuild({ tasks }, buildSettingsSchema.parse(settings), 0);
}

/** One turn: the state with what it decides applied. */
export function tick(state: BuildState, nowMs: number): BuildState {
  return applyActions(state, decide(state, nowMs), nowMs);
}

/** One turn after some reports. */
export function after(state: BuildState, nowMs: number, ...observations: readonly Observation[]): BuildState {
  return tick(
    observations.reduce((current, observation) => observe(current, observation, nowMs), state),
    nowMs,
  );
}

export function ended(taskId: string, attempt: number, outcome: Outcome): Observation {
  return { type: "attempt-ended", task: taskId, attempt, outcome };
}

export const merged = endAs("merged");

export function failed(error: string, pattern: string | null = null): Outcome {
  return { ...endAs("checks_failed", error), pattern };
}

export function statuses({ tasks }: BuildState): Record<string, string> {
  return Object.fromEntries(tasks.map(({ id, status }) => [id, status]));
}
