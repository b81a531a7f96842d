import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmod, mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { createClient } from "@slipway/client";
import { type EventView, type PlanView, serverFiles, tailsOf } from "@slipway/contract";
import { percentile, type Report } from "./measure.ts";

const root = fileURLToPath(new URL("..", import.meta.url));

/** The demo from its first word to its last, as a user runs it; and how old what happens in its sandboxes is when it is heard of. */
export async function measureDemo(report: Report): Promise<void> {
  const directory = await mkdtemp("/var/tmp/slipway-demo-");
  await using parts = new AsyncDisposableStack();
  parts.defer(() => rm(directory, { recursive: true, force: true, maxRetries: 10 }));
  // As root, sandboxes run as another user, who must be able to pass through.
  await chmod(directory, 0o711);
  const env = { ...process.env, SLIPWAY_STATE_DIR: directory };
  const demo = spawn(process.execPath, [join(root, "scripts/demo.mjs"), "--exit"], { env, stdio: "ignore" });
  const exit = once(demo, "exit");
  const following = follow(join(directory, "demo"), exit);
  const [code] = await exit;
  const { heard, tasks } = await following;
  if (code !== 0) throw new Error(`the demo ended with ${code}`);
  const events = heard.map(({ event }) => event);
  const [ours, baseline] = [wallMs(events), ownMs(events, tasks)];
  const n = events.filter(({ type }) => type === "task.merged").length;
  report({ name: "demo_vs_agents", value: ours / baseline, unit: "ratio", ours, baseline, n, bound: { atMost: 1.3 } });
  const ages = heard.flatMap(({ event, heardAtMs }) => {
    const saidAt = event.type === "attempt.progress" ? event.data.saidAt : undefined;
    return saidAt === undefined ? [] : [heardAtMs - saidAt];
  });
  const value = percentile(ages, 0.99);
  const figure = { unit: "ms", ours: value, baseline: null, n: ages.length, bound: {} };
  report({ name: "event_p99_ms", value, ...figure, bound: { atMost: 250 } });
  report({ name: "event_median_ms", ...figure, value: percentile(ages, 0.5) });
}

interface Heard {
  readonly event: EventView;
  readonly heardAtMs: number;
}

/** All events of the demo's build as they come, and its plan. */
async function follow(state: string, ended: Promise<unknown>): Promise<{ heard: Heard[]; tasks: PlanView["tasks"] }> {
  let isOver = false;
  void ended.then(() => {
    isOver = true;
  });
  const { builds } = createClient({ socketPath: join(state, serverFiles.socket) });
  const heard: Heard[] = [];
  let tasks: PlanView["tasks"] = [];
  while (!isOver) {
    // The server is not there yet.
    const [build] = await builds.list().then(
      (page) => page.builds,
      () => [],
    );
    if (build !== undefined) {
      for await (const event of builds.follow(build.id)) {
        heard.push({ event, heardAtMs: Date.now() });
        if (event.type === "plan.made") tasks = (await builds.plan(build.id)).tasks;
      }
      break;
    }
    await sleep(100);
  }
  return { heard, tasks };
}

function wallMs(events: readonly EventView[]): number {
  return (events.find(({ type }) => type === "build.ended")?.at ?? 0) - (events[0]?.at ?? 0);
}

/**
 * What agents, tests and gates take themselves, along the longest path of tasks, and the last look at main. Of a gate's runs
 * for a task the last one that it has passed counts: what is run again is not work that has to be done.
 */
function ownMs(events: readonly EventView[], tasks: PlanView["tasks"]): number {
  const own = new Map<string, number>();
  const add = (task: string, ms: number) => own.set(task, (own.get(task) ?? 0) + ms);
  const begun = new Map<string, number>();
  const passed = new Map<string, { task: string; ms: number }>();
  for (const { type, at, data } of events) {
    if (type === "gate.ended" && data.verdict === "passed") {
      passed.set(`${data.task} ${data.gate}`, { task: String(data.task), ms: data.durationMs });
    }
    if (type !== "attempt.progress") continue;
    const name = `${data.task} ${data.attempt} ${data.phase}`;
    if (data.status === "begun") begun.set(name, at);
    if (data.status === "finished" || data.status === "failed") {
      add(data.task, at - (begun.get(name) ?? at));
      begun.delete(name);
    }
  }
  for (const { task, ms } of passed.values()) add(task, ms);
  const tails = tailsOf(tasks, ({ id }) => own.get(id) ?? 0);
  const at = (wanted: string) => events.find(({ type }) => type === wanted)?.at ?? 0;
  return Math.max(...tails.values()) + at("satisfaction.checked") - at("satisfaction.asked");
}
