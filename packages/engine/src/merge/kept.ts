import { findingsSchema, gateTargets } from "@slipway/contract";
import { z } from "zod";
import type { KeptQueue } from "../ports/merging.ts";
import { digestOf, type MergeQueue } from "./state.ts";

/** How a queue is kept with its build. */
const name = z.string();
const names = z.array(name);
const atMs = z.int();
const count = z.int().min(0);
const main = z.strictObject({ commit: name, tree: name });

/** Earlier queues have the names of all, or none. */
const tasks = z.union([name, names.transform(digestOf)]).default(digestOf([]));

const suspicion = z.strictObject({ gate: name, commit: name, tree: name, tasks, base: name });

const candidate = z.strictObject({
  id: name,
  task: name,
  attempt: name,
  dependencies: names,
  commit: name,
  tree: name,
  tailMs: z.number(),
  offeredAtMs: atMs,
  place: count.nullable(),
  suspicion: suspicion.nullable(),
});

const outcome = z.discriminatedUnion("type", [
  z.strictObject({ type: z.literal("clean"), commit: name, tree: name }),
  z.strictObject({ type: z.literal("conflict"), paths: names }),
]);

const run = z.strictObject({
  run: count,
  gate: name,
  candidate: name,
  base: name.nullable(),
  commit: name,
  tree: name,
  startedAtMs: atMs,
  tasks,
  ahead: names.default([]),
});

const result = z.strictObject({
  gate: name,
  tree: name,
  tasks,
  passed: z.boolean(),
  failures: count,
  errors: count,
  notBeforeMs: atMs,
  trouble: z.strictObject({ times: count, reason: z.string() }).nullable().default(null),
  findings: findingsSchema,
  failedAtMs: atMs.default(0),
});

const queueSchema = z.strictObject({
  wish: z.enum(["run", "pause", "cancel"]),
  slots: count,
  window: count,
  main,
  merged: names,
  ended: names,
  gates: z.array(z.strictObject({ name, on: z.enum(gateTargets), rank: z.number(), limitMs: z.number() })),
  candidates: z.array(candidate),
  merging: z.strictObject({ candidate: name, task: name, from: name, to: name, tree: name }).nullable(),
  testMerges: z.array(z.strictObject({ base: name, commit: name, outcome: outcome.nullable() })),
  runs: z.array(run),
  started: count,
  results: z.array(result),
});

export function readQueue(kept: KeptQueue): MergeQueue | null {
  return queueSchema.nullable().parse(kept);
}

export function keepQueue(queue: MergeQueue | null): KeptQueue {
  return JSON.parse(JSON.stringify(queue));
}
