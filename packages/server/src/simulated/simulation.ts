import { type AttemptId, type BuildId, compareIds } from "@slipway/contract";
import { lockIntent, type NewEvent, report, type Work, type WorkItem, type WorkingBuild } from "@slipway/engine";
import { SimulatedAttempt, type Surroundings, type Witness } from "./attempt.ts";
import { type AttemptName, isPlannable, type SimulationSettings, stageMsOf, unsatisfiedOf } from "./fate.ts";
import { criteria, generatedChecks, generatedIntent, generatedTasks } from "./generated.ts";
import type { Host } from "./host.ts";
import type { Clock } from "./manual-clock.ts";

export interface SimulationParts {
  readonly settings: SimulationSettings;
  readonly clock: Clock;
  readonly host: Host;
  readonly witness?: Witness | undefined;
}

/** Simulates sandboxes: they only take time and cost money. */
export interface Simulation extends Work {
  /** Attempts whose sandbox shows signs of life. */
  alive(build?: BuildId): AttemptName[];
  /** Resolves when the host has taken all notices. Throws the first error of the host. */
  settled(): Promise<void>;
}

export function createSimulation({ settings, clock, host, witness }: SimulationParts): Simulation {
  const builds = new Map<BuildId, SimulatedBuild>();
  const pending = new Set<Promise<unknown>>();
  const failures: unknown[] = [];

  const follow = (work: Promise<unknown>): void => {
    const followed: Promise<unknown> = work
      .catch((error: unknown) => failures.push(error))
      .finally(() => pending.delete(followed));
    pending.add(followed);
  };
  const tell: Surroundings["tell"] = (notice, then) => follow(host.take(notice).then(then));
  const world: Surroundings = { settings, clock, witness, tell };

  const find = (id: BuildId): SimulatedBuild => {
    const known = builds.get(id) ?? { attempts: new Map(), over: new Set(), begun: new Set() };
    builds.set(id, known);
    return known;
  };

  /** Starts something that takes time and is reported at its end. */
  const begin = ({ begun }: SimulatedBuild, build: WorkingBuild, key: string, make: () => Promise<NewEvent>) => {
    if (begun.has(key)) return;
    begun.add(key);
    clock.after(stageMsOf(settings, build.id, key), () =>
      follow(make().then((made) => host.take({ build: build.id, reports: [made] }))),
    );
  };

  const carryOut = (build: WorkingBuild, item: WorkItem): void => {
    const known = find(build.id);
    switch (item.type) {
      case "stage":
        begin(known, build, `stage:${item.stage}:${item.round}`, () => stageReport(settings, build, item));
        break;
      case "check-satisfaction":
      case "plan-remaining":
        begin(known, build, `${item.type}:${item.round}`, async () => roundReport(settings, build, item));
        break;
      case "attempt":
        if (known.over.has(item.id)) break;
        if (known.attempts.has(item.id)) known.attempts.get(item.id)?.become(item);
        else known.attempts.set(item.id, new SimulatedAttempt(build, item, world));
        break;
      case "end-attempt":
        endAttempt(known, item.id);
    }
  };

  return {
    async carryOut(build, asked) {
      for (const item of asked) carryOut(build, item);
    },
    async reattach(build, all) {
      const known = find(build.id);
      const wanted = new Set(all.flatMap((item) => (item.type === "attempt" ? [item.id] : [])));
      for (const [id, attempt] of known.attempts) {
        if (wanted.has(id)) attempt.notice();
        else endAttempt(known, id);
      }
      for (const item of all) carryOut(build, item);
    },
    heardAtMs(build, task, number) {
      for (const { name, heardAtMs } of builds.get(build)?.attempts.values() ?? []) {
        if (name.task === task && name.number === number) return heardAtMs;
      }
      return undefined;
    },
    alive(build) {
      const asked = build === undefined ? [...builds.values()] : [find(build)];
      return asked.flatMap(({ attempts }) =>
        [...attempts.values()].filter(({ isAlive }) => isAlive).map(({ name }) => name),
      );
    },
    async settled() {
      while (pending.size > 0) await Promise.all(pending);
      if (failures.length > 0) throw failures[0];
    },
  };
}

interface SimulatedBuild {
  readonly attempts: Map<AttemptId, SimulatedAttempt>;
  /** Ended attempts: a request for one of them is outdated. */
  readonly over: Set<AttemptId>;
  readonly begun: Set<string>;
}

function endAttempt({ attempts, over }: SimulatedBuild, id: AttemptId): void {
  over.add(id);
  attempts.get(id)?.end();
  attempts.delete(id);
}

async function stageReport(
  settings: SimulationSettings,
  build: WorkingBuild,
  { stage }: Extract<WorkItem, { type: "stage" }>,
): Promise<NewEvent> {
  const open = generatedIntent(build);
  if (stage === "draft") return report("intent.drafted", "intent.drafted", { open, start: startOf(build) });
  const locked = await lockIntent(open, 0);
  if (stage === "lock")
    return report("intent.locked", "intent.locked", { locked, checks: generatedChecks(locked.hash) });
  const tasks = generatedTasks(settings, build.id, { round: 1, serves: criteria });
  return report("plan.made", "plan.made", { plan: { mode: build.mode, intentHash: locked.hash, tasks: [...tasks] } });
}

function startOf({ mode }: WorkingBuild) {
  const repository = { files: [], notes: "", routes: [], pages: [], unseen: null };
  if (mode === "new") return { mode };
  return mode === "feature" ? { mode, repository } : { mode, repository, diagnosis: { problems: [] } };
}

function roundReport(
  settings: SimulationSettings,
  build: WorkingBuild,
  item: Extract<WorkItem, { type: "check-satisfaction" | "plan-remaining" }>,
): NewEvent {
  const { round } = item;
  if (item.type === "check-satisfaction") {
    const unsatisfied = unsatisfiedOf(settings, build.id, round, criteria).toSorted(compareIds);
    return report("satisfaction.checked", `satisfaction.checked:${round}`, { round, unsatisfied });
  }
  if (!isPlannable(settings, build.id, round)) {
    const message = "no plan is possible";
    return report("remaining.unplannable", `remaining.unplannable:${round}`, { round, message });
  }
  const tasks = generatedTasks(settings, build.id, { round: round + 1, serves: item.unsatisfied });
  return report("remaining.planned", `remaining.planned:${round}`, { round, tasks: [...tasks] });
}
