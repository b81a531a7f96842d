import { type BuildId, newId, type Task } from "@slipway/contract";
import { onTestFinished } from "vitest";
import { checks, hash, locked, open } from "./plans.ts";
import { stillClock } from "./world/place.ts";
import type { NewBuild } from "./world/store.ts";
import { openWorld, type WorldWith } from "./world.ts";

/** Goes with the test. */
export async function begin(build: NewBuild = {}) {
  const world = await openWorld({ clock: stillClock(), ticks: { project: "shop", request: "a shop", ...build } });
  onTestFinished(() => world[Symbol.asyncDispose]());
  return world;
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
