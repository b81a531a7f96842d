import { execFile } from "node:child_process";
import { createReadStream } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { performance } from "node:perf_hooks";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { gateResultSchema, newId } from "@slipway/contract";
import { type AttemptWork, report as told, type Work } from "@slipway/engine";
import { createReports, openCoordinator } from "@slipway/server/coordinator";
import { createMergeWork, createRepositories } from "@slipway/server/merging";
import { createHost, createScaledClock, createSimulation, usualWorld } from "@slipway/server/simulated";
import { createBuild, openSite } from "./loop-site.ts";
import { median, percentile, type Report } from "./measure.ts";

const execute = promisify(execFile);
const tasks = 30;
const plan = { tasks: [tasks, tasks], edgeProbability: 0, stageMs: [0, 0] } as const;

/**
 * What the host itself does for a task: its turns, the quarantine, test merges, orders to gates, the move of main. One task
 * after the other; attempts have their bundle at hand, and gates pass at once.
 */
export async function measureOverhead(report: Report): Promise<void> {
  await using site = await openSite();
  const { store } = site;
  using clock = createScaledClock({ startMs: Date.now(), factor: 1 });
  const repositories = createRepositories({ directory: join(site.directory, "builds"), environment: process.env });
  const build = await createBuild(store, { slots: 1 });
  const { main, bundles } = await prepare(join(site.directory, "made"), await repositories.of(build));
  const begunAtMs = new Map<string, number>();
  const times: number[] = [];
  await using parts = new AsyncDisposableStack();
  const reports = createReports(store);
  const planner = createSimulation({
    settings: { ...usualWorld, ...plan },
    clock,
    host: createHost({ store, ring: reports.ring }),
  });
  const offer = async ({ task, number: attempt, respawn }: AttemptWork) => {
    const life = { task, attempt, respawn };
    begunAtMs.set(task, performance.now());
    const candidate = newId("cnd");
    const bundle = createReadStream(bundles[begunAtMs.size - 1] ?? "");
    const repository = await repositories.of(build);
    const { commit, tree } = await repository.take(bundle, {
      id: candidate,
      ref: "refs/heads/work",
      base: main.commit,
    });
    await reports.report(build, [
      told("main.made", "main", main),
      told("attempt.heard", null, life),
      told("candidate.offered", candidate, { ...life, offer: 1, candidate, commit, tree }),
    ]);
  };
  const merging = parts.use(
    createMergeWork({
      store,
      repositories,
      clock: Date,
      warn: console.error,
      report: reports.report,
      preview: { follow: () => {}, close: async () => {} },
      onMain: async () => {},
      gates: {
        run: async () => gateResultSchema.parse({ verdict: "passed", findings: [], durationMs: 0 }),
        satisfaction: async () => [],
      },
    }),
  );
  const work: Work = {
    async carryOut(working, items) {
      for (const item of items) {
        if (item.type === "attempt") void offer(item);
        if (item.type === "end-attempt") times.push(performance.now() - (begunAtMs.get(item.task) ?? 0));
      }
      await planner.carryOut(
        working,
        items.filter(({ type }) => type === "stage"),
      );
      await merging.carryOut(working, items);
    },
    reattach: planner.reattach,
    heardAtMs: () => Date.now(),
  };
  parts.use(await openCoordinator({ store, reports, work, name: "bench", slots: 1, clock: Date, warn: console.error }));
  reports.ring(build);
  while (times.length < tasks) await sleep(20);
  const value = median(times);
  const figure = { unit: "ms", ours: value, baseline: null, n: tasks, bound: {} };
  report({ name: "overhead_per_task_ms", value, ...figure });
  report({ name: "overhead_per_task_p95_ms", ...figure, value: percentile(times, 0.95) });
}

type Repositories = ReturnType<typeof createRepositories>;
type Repository = Awaited<ReturnType<Repositories["of"]>>;

/** A bundle for each task, with a file of its own, as a sandbox would offer it. */
async function prepare(directory: string, repository: Repository) {
  const { main: commit } = await repository.create({ from: "empty", atMs: Date.now() });
  await mkdir(directory);
  const git = async (...args: readonly string[]) => {
    const identity = ["-c", "user.name=bench", "-c", "user.email=bench@localhost"];
    const { stdout } = await execute("git", ["-C", directory, ...identity, ...args]);
    return stdout.trim();
  };
  await git("init", "--quiet");
  await writeFile(join(directory, "main.bundle"), repository.bundle({ tip: commit }));
  await git("fetch", "--quiet", "main.bundle", "refs/heads/main");
  const bundles: string[] = [];
  for (let task = 0; task < tasks; task++) {
    await git("checkout", "--quiet", "--force", "-B", "work", commit);
    await writeFile(join(directory, `task-${task}.js`), `export const task = ${task};\n`.repeat(200));
    await git("add", `task-${task}.js`);
    await git("commit", "--quiet", "--message", `Task ${task}`);
    const path = join(directory, `${task}.bundle`);
    await git("bundle", "create", "--quiet", path, "refs/heads/work", `^${commit}`);
    bundles.push(path);
  }
  return { main: { commit, tree: await repository.treeOf(commit) }, bundles };
}
