import { type AttemptId, newId, type Task } from "@slipway/contract";
import type { AttemptWork } from "@slipway/engine";

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

/** The smallest task. */
export function task(id: string, dependencies: string[] = [], change: Partial<Task> = {}): Task {
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
    ...change,
  };
}

export function attemptAt(task: string, change: Partial<AttemptWork> = {}): AttemptWork {
  return {
    type: "attempt",
    id: newId("att") as AttemptId,
    task,
    number: 1,
    respawn: 0,
    paused: false,
    level: null,
    pattern: null,
    from: "main",
    answer: null,
    ...change,
  };
}
