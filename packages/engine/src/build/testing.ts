import {
  type BuildSettingsInput,
  buildSettingsSchema,
  type CandidateId,
  endAs,
  newId,
  type Task,
} from "@slipway/contract";
import { intent } from "../testing/answers.ts";
import { applyActions } from "./apply.ts";
import { decide } from "./decide.ts";
import type { Fact, Known } from "./observe/facts.ts";
import { observe } from "./observe/observe.ts";
import type { BuildOrder } from "./observe/orders.ts";
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

/** What the store knows of a build that is new. */
export const nothingKnown: Known = {
  build: { id: newId("bld", 0), account: "ann", project: "shop" },
  attempts: new Map(),
  patterns: new Set(),
  start: undefined,
  intentHash: "unknown",
};

/** The state with a fact in it. */
export function seen(state: BuildState, fact: Fact, nowMs: number, known = nothingKnown): BuildState {
  return observe(state, fact, known, nowMs).state;
}

/** One turn after some facts. */
export function after(state: BuildState, nowMs: number, ...facts: readonly Fact[]): BuildState {
  return tick(
    facts.reduce((current, fact) => seen(current, fact, nowMs), state),
    nowMs,
  );
}

export function ended(taskId: string, attempt: number, outcome: Outcome, respawn = 0): Fact {
  const { pattern: _, main: __, budgetMicroUsd, ...end } = outcome;
  return { type: "attempt.ended", data: { task: taskId, attempt, respawn, end, budgetMicroUsd } };
}

export function offered(taskId: string, attempt: number, offer: number, respawn = 0): Fact {
  const candidate = "cnd" as CandidateId;
  const files = { commit: "c", tree: "t" };
  return { type: "candidate.offered", data: { task: taskId, attempt, respawn, offer, candidate, ...files } };
}

export function returned(taskId: string, attempt: number, offer: number): Fact {
  const back = { type: "returned", findings: [], main: null, unchanged: false } as const;
  return { type: "offer.settled", data: { task: taskId, attempt, offer, ...back } };
}

export function spent(microUsd: number): Fact {
  return { type: "ledger.spent", data: { microUsd } };
}

export const drafted: Fact = { type: "intent.drafted", data: { open: { status: "open", intent }, start: null } };
export const released: Fact = { type: "intent.released", data: {} };

export function checkedRound(round: number, unsatisfied: readonly string[]): Fact {
  return { type: "satisfaction.checked", data: { round, unsatisfied: [...unsatisfied], evidence: [] } };
}

export function plannedRest(round: number, tasks: readonly Task[]): Fact {
  return { type: "remaining.planned", data: { round, tasks: [...tasks] } };
}

export const orders = {
  pause: { type: "order.pause", data: {} },
  resume: { type: "order.resume", data: {} },
  cancel: { type: "order.cancel", data: {} },
} as const satisfies Record<string, BuildOrder>;

export function budgetOf(budgetMicroUsd: number, resume = false): BuildOrder {
  return { type: "order.budget", data: { budgetMicroUsd, resume } };
}

export const merged = endAs("merged");

export function failed(error: string): Outcome {
  return endAs("checks_failed", error);
}

export function statuses({ tasks }: BuildState): Record<string, string> {
  return Object.fromEntries(tasks.map(({ id, status }) => [id, status]));
}
