import type { Plan } from "@slipway/contract";
import { buildSettingsSchema, endAs, newId, tailsOf } from "@slipway/contract";
import { applyActions, type BuildState, beginBuild, decide, type Fact, type Known, observe } from "@slipway/engine";
import { bridgeVersusRedis } from "./bridge.ts";
import { measureResume } from "./loop-resume.ts";
import { measureSimulated } from "./loop-sim.ts";
import { measureTurns } from "./loop-turns.ts";
import { median, percentile, type Report } from "./measure.ts";
import { normal, randomFrom } from "./random.ts";
import { storeEvents } from "./store.ts";

/** Each figure with the name it reports; docs/figures.md says what it means. */
const figures: Record<string, (report: Report) => void | Promise<void>> = {
  makespan_vs_bound: makespan,
  tick_ms: measureTurns,
  resume_vs_start: measureResume,
  sim_growth: measureSimulated,
  bridge_p99_vs_redis: bridgeVersusRedis,
  store_events_per_s: storeEvents,
};

export async function run(report: Report, only: ReadonlySet<string>): Promise<void> {
  for (const [name, measure] of Object.entries(figures)) {
    if (only.size === 0 || only.has(name)) await measure(report);
  }
}

const graphs = 200;
const taskCount = 200;
const edgeProbability = 0.01;
/** Tasks differ as much as estimates are wrong: durations are log-normal, too, around half an hour. */
const medianMinutes = 30;
const durationSigma = 0.7;
const estimateSigma = 0.7;
const slots = 20;

function makespan(report: Report): void {
  const runs = Array.from({ length: graphs }, (_, seed) => simulate(seed + 1));
  const ratios = runs.map(({ ours, bound }) => ours / bound);
  const ours = median(runs.map((one) => one.ours));
  const baseline = median(runs.map((one) => one.bound));
  const figure = { unit: "ratio", ours, baseline, n: graphs };
  report({ name: "makespan_vs_bound", value: median(ratios), ...figure, bound: { atMost: 1.06 } });
  report({ name: "makespan_p95_vs_bound", value: percentile(ratios, 0.95), ...figure, bound: { atMost: 1.2 } });
}

interface Simulated {
  readonly plan: Plan;
  /** How long each task really takes. */
  readonly durations: ReadonlyMap<string, number>;
}

const nothingKnown: Known = {
  build: { id: newId("bld", 0), account: "bench", project: "bench" },
  attempts: new Map(),
  patterns: new Set(),
  start: undefined,
  intentHash: "",
};

/** How long a build takes whose tasks all succeed, and the least that any schedule could need. */
function simulate(seed: number): { readonly ours: number; readonly bound: number } {
  const { plan, durations } = randomBuild(seed);
  const durationOf = (id: string) => durations.get(id) ?? 0;
  const settings = buildSettingsSchema.parse({ slots, timeoutMs: 30 * 24 * 3_600_000 });
  let state: BuildState = beginBuild(plan, settings, 0);
  let nowMs = 0;
  const see = (fact: Fact) => {
    state = observe(state, fact, nothingKnown, nowMs).state;
  };
  for (;;) {
    const actions = decide(state, nowMs);
    state = applyActions(state, actions, nowMs);
    for (const action of actions) {
      // What is offered is not watched: the simulation has no heartbeats.
      if (action.type === "start-attempt")
        see({ type: "attempt.offered", data: { task: action.task, attempt: action.attempt } });
    }
    const next = state.attempts
      .map((attempt) => ({ ...attempt, endsAtMs: attempt.startedAtMs + durationOf(attempt.task) }))
      .sort((a, b) => a.endsAtMs - b.endsAtMs)[0];
    if (next === undefined) break;
    nowMs = next.endsAtMs;
    const { task, number, respawns: respawn } = next;
    see({ type: "attempt.ended", data: { task, attempt: number, respawn, end: endAs("merged") } });
  }
  const work = [...durations.values()].reduce((sum, ms) => sum + ms, 0);
  const longestPath = Math.max(...tailsOf(plan.tasks, ({ id }) => durationOf(id)).values());
  return { ours: nowMs, bound: Math.max(longestPath, work / slots) };
}

function randomBuild(seed: number): Simulated {
  const random = randomFrom(seed);
  const drawn = Array.from({ length: taskCount }, (_, index) => {
    const id = `task-${index}`;
    const earlier = Array.from({ length: index }, (_, other) => `task-${other}`);
    const dependencies = earlier.filter(() => random() < edgeProbability);
    const minutes = medianMinutes * Math.exp(durationSigma * normal(random));
    const estimate = { minutes: minutes * Math.exp(estimateSigma * normal(random)), usd: 1 };
    return { task: { ...anyTask, id, dependencies, estimate }, durationMs: Math.round(minutes * 60_000) };
  });
  return {
    plan: { mode: "new", intentHash: "sha256:0", tasks: drawn.map(({ task }) => task) },
    durations: new Map(drawn.map(({ task, durationMs }) => [task.id, durationMs])),
  };
}

const anyTask = { title: "x", description: "x", component: "app", features: ["app"], expectedFiles: [], criteria: [] };
