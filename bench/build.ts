import {
  type AttemptId,
  type CandidateId,
  type Gate,
  type GateVerdict,
  gateResultSchema,
  usualGates,
} from "@slipway/contract";
import {
  applyMergeActions,
  decideMerges,
  type MergeAction,
  type MergeQueue,
  observeMerges,
  openQueue,
  type QueueFact,
} from "@slipway/engine";
import { measureDemo } from "./build-demo.ts";
import { measureOverhead } from "./build-overhead.ts";
import { median, type Report } from "./measure.ts";
import { normal, randomFrom } from "./random.ts";

/** Each figure with the name it reports; docs/figures.md says what it means. */
const figures: Record<string, (report: Report) => void | Promise<void>> = {
  queue_vs_oracle: (report) => measureQueue(report, "queue", { hidden: 0.5 }, { oracle: 0.5, serial: 2 }),
  // The hardest that it can be: nothing is wrong with any candidate until it stands on top of main.
  queue_hard_vs_oracle: (report) => measureQueue(report, "queue_hard", { hidden: 1 }, {}),
  overhead_per_task_ms: measureOverhead,
  demo_vs_agents: measureDemo,
};

export async function run(report: Report, only: ReadonlySet<string>): Promise<void> {
  for (const [name, measure] of Object.entries(figures)) {
    if (only.size === 0 || only.has(name)) await measure(report);
  }
}

/*
 * The model. The queue's own decisions, against gates that only take time. There are always some candidates in the queue:
 * when one is merged or sent back, the next one comes. One in five fails for good: by itself, in one of the gates that look at it alone, or
 * `hidden`, only in main-test. A gate takes the same time on a candidate whenever it runs on it; some runs fail for nothing, and each failure
 * is run once more before it is believed. Candidates do not conflict.
 *
 * The oracle knows which candidates are good, runs each gate once on those and on no others, and never waits: no queue can be
 * faster on as many slots. Serial is the plainest queue that keeps main green: one candidate after the other, one gate after the other.
 */
const rounds = 20;
const candidateCount = 200;
const openCount = 12;
const slots = 4;
const failing = 0.2;
const flaking = 0.02;
const medianMinutes: Readonly<Record<string, number>> = { build: 1, tests: 2, intent: 2, "main-test": 5 };
const durationSigma = 0.4;
/** What git takes on the host. */
const testMergeMs = 50;
const mergeMs = 100;

const runGates = usualGates.filter(({ on }) => on !== "others");

interface Model {
  /** Part of the failing candidates that only main-test finds. */
  readonly hidden: number;
}

function measureQueue(
  report: Report,
  name: string,
  model: Model,
  bounds: { readonly oracle?: number; readonly serial?: number },
): void {
  const all = Array.from({ length: rounds }, (_, seed) => simulate(seed + 1, model));
  const rate = (of: (one: Simulated) => number) => median(all.map(of));
  const ours = rate(({ queuePerHour }) => queuePerHour);
  const against = (baseline: number, atLeast: number | undefined) => ({
    value: ours / baseline,
    unit: "ratio",
    ours,
    baseline,
    rawUnit: "merges/h",
    n: rounds,
    bound: atLeast === undefined ? {} : { atLeast },
  });
  report({
    name: `${name}_vs_oracle`,
    ...against(
      rate(({ oraclePerHour }) => oraclePerHour),
      bounds.oracle,
    ),
  });
  report({
    name: `${name}_vs_serial`,
    ...against(
      rate(({ serialPerHour }) => serialPerHour),
      bounds.serial,
    ),
  });
}

/** Merges per hour. */
interface Simulated {
  readonly queuePerHour: number;
  readonly oraclePerHour: number;
  readonly serialPerHour: number;
}

interface Candidate {
  readonly id: string;
  /** The gate that it fails. */
  readonly fails: string | null;
  readonly durations: ReadonlyMap<string, number>;
}

function simulate(seed: number, model: Model): Simulated {
  const random = randomFrom(seed);
  const candidates = Array.from({ length: candidateCount }, (_, index) => draw(`c${index}`, model, random));
  const good = candidates.filter(({ fails }) => fails === null);
  const work = good.flatMap(({ durations }) => [...durations.values()]).reduce((sum, ms) => sum + ms, 0);
  const perHour = (merges: number, ms: number) => (merges * 3_600_000) / ms;
  const queue = runQueue(candidates, random);
  return {
    queuePerHour: perHour(queue.merged, queue.ms),
    oraclePerHour: perHour(good.length, work / slots),
    serialPerHour: perHour(good.length, runSerial(candidates, random)),
  };
}

function draw(id: string, { hidden }: Model, random: () => number): Candidate {
  const durations = new Map(
    runGates.map(({ name }) => {
      const minutes = (medianMinutes[name] ?? 1) * Math.exp(durationSigma * normal(random));
      return [name, Math.round(60_000 * minutes)];
    }),
  );
  const alone = runGates.filter(({ on }) => on === "candidate");
  const found = random() < hidden ? "main-test" : alone[Math.floor(random() * alone.length)]?.name;
  return { id, durations, fails: random() < failing && found !== undefined ? found : null };
}

function durationOf({ durations }: Candidate, gate: string): number {
  return durations.get(gate) ?? 0;
}

function runSerial(candidates: readonly Candidate[], random: () => number): number {
  let ms = 0;
  for (const candidate of candidates) {
    for (const { name } of runGates) {
      ms += durationOf(candidate, name);
      const fails = candidate.fails === name;
      if (fails || random() < flaking) ms += durationOf(candidate, name);
      if (fails) break;
    }
    if (candidate.fails === null) ms += testMergeMs + mergeMs;
  }
  return ms;
}

interface Coming {
  readonly atMs: number;
  readonly fact: QueueFact;
}

function runQueue(candidates: readonly Candidate[], random: () => number): { merged: number; ms: number } {
  const known = new Map(candidates.map((candidate) => [candidate.id, candidate]));
  /** Commits with a candidate in them that fails main-test. */
  const red = new Set(candidates.filter(({ fails }) => fails === "main-test").map(({ id }) => id));
  const waiting = [...candidates];
  let queue: MergeQueue = openQueue({ gates: usualGates, slots, main: { commit: "main", tree: "main" } });
  const coming: Coming[] = [];
  let commits = 0;
  let nowMs = 0;

  const verdictOf = (gate: Gate["name"], candidate: Candidate, commit: string): GateVerdict => {
    const fails = gate === "main-test" ? red.has(commit) : candidate.fails === gate;
    return fails || random() < flaking ? "failed" : "passed";
  };
  const begin = (action: MergeAction): Coming[] => {
    switch (action.type) {
      case "test-merge": {
        const commit = `m${commits++}`;
        if (red.has(action.base) || red.has(action.commit)) red.add(commit);
        const { base, commit: merged } = action;
        const outcome = { type: "clean", commit, tree: commit } as const;
        return [{ atMs: nowMs + testMergeMs, fact: { type: "merge.tested", data: { base, commit: merged, outcome } } }];
      }
      case "gate-run": {
        const candidate = known.get(action.candidate);
        if (candidate === undefined) return [];
        const verdict = verdictOf(action.gate, candidate, action.commit);
        const atMs = nowMs + durationOf(candidate, action.gate);
        const result = gateResultSchema.parse({ verdict, findings: [], durationMs: 0 });
        const data = { run: action.run, ...result };
        return [{ atMs, fact: { type: "gate.ended", data } }];
      }
      case "merge": {
        const main = { commit: action.to, tree: action.tree };
        if (red.has(action.to)) throw new Error(`${action.candidate} is merged and fails main-test`);
        const { candidate } = action;
        return [{ atMs: nowMs + mergeMs, fact: { type: "merge.ended", data: { candidate, merged: true, main } } }];
      }
      default:
        return [];
    }
  };

  for (;;) {
    while (queue.candidates.length < openCount && waiting.length > 0) {
      const { id = "" } = waiting.shift() ?? {};
      const ids = { id: id as CandidateId, attempt: id as AttemptId };
      const offer = { ...ids, task: id, dependencies: [], commit: id, tree: id, tailMs: 0 };
      queue = observeMerges(queue, { type: "offer.made", data: offer }, nowMs);
    }
    const actions = decideMerges(queue, nowMs);
    queue = applyMergeActions(queue, actions, nowMs);
    coming.push(...actions.flatMap(begin));
    coming.sort((a, b) => a.atMs - b.atMs);
    const atMs = coming[0]?.atMs;
    if (queue.candidates.length === 0 && waiting.length === 0) return { merged: queue.merged.length, ms: nowMs };
    if (atMs === undefined) throw new Error("the queue has come to a standstill");
    nowMs = atMs;
    for (; coming[0]?.atMs === nowMs; coming.shift()) queue = observeMerges(queue, coming[0].fact, nowMs);
  }
}
