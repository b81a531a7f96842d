import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  type BuildId,
  type BuildSettingsInput,
  buildSettingsSchema,
  type Hold,
  newId,
  type Task,
} from "@slipway/contract";
import {
  createFleet,
  createTick,
  newBuildDetails,
  type ReportType,
  report,
  type Tick,
  type WorkItem,
} from "@slipway/engine";
import { openDatabase, openStore } from "@slipway/store";
import { afterEach } from "vitest";

export const by = { holder: "server-1", generation: 1 };

/** A store, a build in it, and a world that writes down what it is asked for. */
export async function begin({ hold = "none", ...settings }: BuildSettingsInput & { readonly hold?: Hold } = {}) {
  const directory = mkdtempSync(join(tmpdir(), "slipway-tick-"));
  const database = await openDatabase({ url: `file:${join(directory, "slipway.db")}` });
  let nowMs = 1_000_000;
  const clock = { now: () => nowMs };
  const store = await openStore(database, clock, clock);
  const build = newId("bld");
  const accepted = buildSettingsSchema.parse(settings);
  const details = newBuildDetails(accepted, hold, nowMs);
  const record = { id: build, account: "ada", project: "shop", mode: "new", request: "a shop", details } as const;
  await store.builds.create(record, accepted.budgetMicroUsd, { type: "build.created" });
  const asked: WorkItem[] = [];
  const reattached: (readonly WorkItem[])[] = [];
  const heard = new Map<string, number>();
  let refusal: Error | undefined;
  const work = {
    async carryOut(_: unknown, items: readonly WorkItem[]) {
      if (refusal !== undefined) throw refusal;
      asked.push(...items);
    },
    async reattach(_: unknown, items: readonly WorkItem[]) {
      if (refusal !== undefined) throw refusal;
      reattached.push(items);
    },
    heardAtMs: (_: BuildId, task: string, number: number) => heard.get(`${task}#${number}`),
  };
  const newTick = () => createTick({ store, work, fleet: createFleet(100, () => {}), clock });
  let tick: Tick = newTick();
  disposals.push(async () => {
    await database[Symbol.asyncDispose]();
    rmSync(directory, { recursive: true });
  });
  return {
    store,
    build,
    asked,
    reattached,
    heard,
    turn: (who = by) => tick(build, who, null),
    restart() {
      tick = newTick();
    },
    now: clock.now,
    pass(ms: number) {
      nowMs += ms;
    },
    refuse(error?: Error) {
      refusal = error;
    },
    tell: <T extends ReportType>(type: T, data: Parameters<typeof report<T>>[2], key: string | null = null) =>
      store.events.report(build, [report(type, key, data)]),
    /** What was asked since the last look. */
    look: () => asked.splice(0),
    status: async () => (await store.builds.get(build)).status,
    tasks: async () =>
      Object.fromEntries((await store.builds.state(build)).tasks.map(({ id, status }) => [id, status])),
    events: async () => (await store.events.read(build, 0, { source: "decision" })).map(({ type }) => type),
  };
}

const disposals: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const dispose of disposals.splice(0)) await dispose();
});

export const hash = `sha256:${"0".repeat(64)}` as const;
export const intent = {
  request: "a shop",
  appType: "shop",
  character: "calm",
  coreValue: "buy",
  criteria: ["a", "b", "c", "d", "e"].map((id) => ({ id, kind: "functional" as const, statement: id })),
  workflows: ["x", "y"].map((id) => ({ id, title: id, steps: ["go"], success: "there", walk: ["start", "buy"] })),
  identity: { mood: "calm", colours: ["blue"], typography: "plain", layout: "wide" },
  antiPatterns: ["noise"],
  surface: {
    pages: [{ id: "start", path: "/", purpose: "buy" }],
    controls: [{ id: "buy", page: "start", role: "button" as const, name: "Buy" }],
    messages: [],
    routes: [],
  },
};
export const open = { status: "open" as const, intent };
export const locked = { status: "locked" as const, intent, hash, lockedAtMs: 1 };
const check = {
  type: "measure" as const,
  proves: "a",
  page: "start",
  sees: { value: "buy" },
  metric: "firstByteMs" as const,
  atMost: 100,
};
export const checks = { intentHash: hash, checks: [check, { ...check, atMost: 200 }, { ...check, proves: "b" }] };

export function task(id: string, dependencies: string[] = []): Task {
  return {
    id,
    title: id,
    description: id,
    component: "app",
    features: ["app"],
    dependencies,
    expectedFiles: [],
    estimate: { minutes: 10, usd: 1 },
    criteria: [],
  };
}

export function sandboxOf(build: BuildId) {
  return {
    id: newId("sbx"),
    build,
    account: "ada",
    project: "shop",
    provider: "simulated",
    providerId: null,
    host: null,
    config: {},
    status: "running",
    reason: null,
    tasks: ["cart"],
    score: null,
    costMicroUsd: 0,
    createdAt: 1,
    activeAt: 1,
    endedAt: null,
  };
}

type Begun = Awaited<ReturnType<typeof begin>>;

export async function plan({ tell, turn, look }: Begun, tasks: readonly Task[]) {
  await turn();
  await tell("intent.drafted", { open, start: { mode: "new" } });
  await turn();
  await tell("intent.locked", { locked, checks });
  await turn();
  await tell("plan.made", { plan: { mode: "new", intentHash: hash, tasks: [...tasks] } });
  await turn();
  return look();
}
