import type { BuildId, Task } from "@slipway/contract";
import { newId } from "@slipway/contract";
import { onTestFinished } from "vitest";
import { stillClock } from "./world/place.ts";
import type { NewBuild } from "./world/store.ts";
import { openWorld, type WorldWith } from "./world.ts";

/** Goes with the test. */
export async function begin(build: NewBuild = {}) {
  const world = await openWorld({ clock: stillClock(), ticks: { project: "shop", request: "a shop", ...build } });
  onTestFinished(() => world[Symbol.asyncDispose]());
  return world;
}

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

export async function plan({ tell, turn, look }: WorldWith<"ticks">, tasks: readonly Task[]) {
  await turn();
  await tell("intent.drafted", { open, start: { mode: "new" } });
  await turn();
  await tell("intent.locked", { locked, checks });
  await turn();
  await tell("plan.made", { plan: { mode: "new", intentHash: hash, tasks: [...tasks] } });
  await turn();
  return look();
}
