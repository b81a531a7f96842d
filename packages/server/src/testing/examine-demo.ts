import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import type { AttemptId, BuildId, RunnerEvent } from "@slipway/contract";
import type { BuildEvent } from "@slipway/engine";
import { createRunLog } from "@slipway/store";
import { expect } from "vitest";
import { z } from "zod";
import { runIdOf } from "../work/attempts/names.ts";
import { allEvents } from "./all-events.ts";
import type { BilledRequest } from "./billed-model.ts";
import { mountsOf, processesOf, sandboxesOf } from "./processes.ts";
import { repeatedSteps, stepsBefore, stepsOf } from "./run-steps.ts";
import type { WorldWith } from "./world.ts";

export type DemoWorld = WorldWith<"demo" | "store">;

const run = promisify(execFile);

export interface DemoBuildEnd {
  readonly id: BuildId;
  /** The tree that main has without faults. */
  readonly tree: string;
  /** What the model was asked meanwhile. */
  readonly requests: readonly BilledRequest[];
  /** How often the server was killed meanwhile. */
  readonly serverKills: number;
}

/** What is true of a build of the demo that has ended, whatever was killed on the way. */
export async function examineDemoBuild(world: DemoWorld, end: DemoBuildEnd): Promise<void> {
  const events = await allEvents(world.store, end.id);
  examineEvents(events);
  await examineMain(world, end);
  await examineSteps(world, end, events);
  await examineGates(world, end);
  await examineMoney(world, end);
}

function examineEvents(events: readonly BuildEvent[]): void {
  expect(events.map(({ sequence }) => sequence)).toEqual(events.map((_, index) => index + 1));
  const keys = events.flatMap(({ key }) => key ?? []);
  expect(keys.filter((key, index) => keys.indexOf(key) !== index)).toEqual([]);
}

/** The same tree, and each task on it once: by the books, and by git itself. */
async function examineMain({ store, stateDirectory }: DemoWorld, { id, tree }: DemoBuildEnd): Promise<void> {
  const { tasks } = await store.builds.state(id);
  const names = tasks.map((task) => task.id).sort();
  expect(tasks.filter(({ status }) => status !== "merged").map((task) => task.id)).toEqual([]);
  const merges = (await store.builds.records(id, "merges")).toSorted((one, other) => one.position - other.position);
  expect(merges.map(({ task }) => task).sort()).toEqual(names);
  expect(merges.slice(1).map(({ parent }) => parent)).toEqual(merges.slice(0, -1).map(({ commit }) => commit));
  const git = gitOf(stateDirectory, id);
  expect(await git("rev-parse", "main")).toBe(merges.at(-1)?.commit);
  const history = await git("log", "--format=%(trailers:key=Task,valueonly,separator=)", "main");
  expect(
    history
      .split("\n")
      .filter((task) => task !== "")
      .sort(),
  ).toEqual(names);
  expect(await git("rev-parse", "main^{tree}"), await git("ls-tree", "-r", "main")).toBe(tree);
}

function gitOf(stateDirectory: string, build: BuildId) {
  const directory = join(stateDirectory, "builds", build, "repository.git");
  return async (...argv: string[]) => (await run("git", ["-C", directory, ...argv])).stdout.trim();
}

/**
 * No step of a run that was finished is done again, but for the one that was being noted when the runner was killed; a sandbox
 * made from a checkpoint repeats nothing that was finished before the checkpoint.
 */
async function examineSteps(
  world: DemoWorld,
  { id, requests, serverKills }: DemoBuildEnd,
  events: readonly BuildEvent[],
) {
  const attempts = await world.store.builds.records(id, "attempts");
  const plans = await world.store.builds.records(id, "plans");
  const titles = new Map(plans.flatMap(({ tasks }) => tasks).map((task) => [task.id, task.title]));
  const restarts = new Map<string | null, number>([[null, 0]]);
  const verified = new Set<string>();
  for (const { id: attempt, task, details } of attempts) {
    const { number, respawns } = z.object({ number: z.int(), respawns: z.int() }).parse(details);
    const done = new Set<string>();
    let resumed = 0;
    for (let respawn = 0; respawn <= respawns; respawn++) {
      const reported = await runnerEvents(world, attempt, respawn);
      const steps = stepsOf(reported);
      const name = `${task}, ${attempt}, life ${respawn}`;
      if (steps.includes("finished verify 1")) verified.add(task);
      expect(repeatedSteps(steps), name).toEqual([]);
      expect(
        steps.filter((step) => done.has(step)),
        name,
      ).toEqual([]);
      resumed += reported.filter(({ type }) => type === "resumed").length;
      const kept = lastCheckpoint(events, sandboxOf(events, { task, attempt: number, respawn }));
      if (kept !== undefined) for (const step of stepsBefore(steps, kept)) done.add(step);
    }
    const title = titles.get(task) ?? task;
    const explained = respawns > 0 ? Number.POSITIVE_INFINITY : resumed;
    restarts.set(title, (restarts.get(title) ?? 0) + explained);
  }
  expect(verified, "tasks that went through all phases").toEqual(new Set(titles.keys()));
  for (const [task, explained] of restarts) {
    const digests = requests.filter((request) => request.task === task).map(({ digest }) => digest);
    expect(digests.length, `requests for ${task}`).toBeGreaterThan(1);
    const repeated = digests.length - new Set(digests).size;
    expect(repeated, `requests that were made again for ${task}`).toBeLessThanOrEqual(explained + serverKills);
  }
}

/** All runs in the same sandbox are one after the other. */
async function runnerEvents({ database }: DemoWorld, attempt: AttemptId, respawn: number): Promise<RunnerEvent[]> {
  const log = createRunLog(database);
  const events: RunnerEvent[] = [];
  for (let part = 0; ; part++) {
    const before = events.length;
    for await (const { event } of log.read(runIdOf(attempt, respawn, part), 0)) events.push(event);
    if (events.length === before) return events;
  }
}

function sandboxOf(events: readonly BuildEvent[], life: Readonly<Record<string, unknown>>): unknown {
  const heard = events.find(
    ({ type, data }) => type === "attempt.heard" && Object.entries(life).every(([name, value]) => data[name] === value),
  );
  return heard?.data["sandbox"];
}

const checkpointData = z.object({ checkpoint: z.object({ sandbox: z.string(), phase: z.string() }) });

/** The phase behind which the last checkpoint of a sandbox was made. */
function lastCheckpoint(events: readonly BuildEvent[], sandbox: unknown): string | undefined {
  const made = events.filter(({ type }) => type === "checkpoint.made").map(({ data }) => checkpointData.parse(data));
  return made.findLast(({ checkpoint }) => checkpoint.sandbox === sandbox)?.checkpoint.phase;
}

/** What a candidate has passed by itself, it does not go through again. */
async function examineGates({ store }: DemoWorld, { id }: DemoBuildEnd): Promise<void> {
  const results = await store.builds.records(id, "gateResults");
  const passed = results
    .filter(({ gate, verdict }) => verdict === "passed" && gate !== "main-test")
    .map(({ candidate, gate }) => `${candidate} ${gate}`);
  expect(passed.filter((one, index) => passed.indexOf(one) !== index)).toEqual([]);
}

interface Entry {
  readonly kind: "model" | "compute";
  readonly usage: string | null;
  readonly spentMicroUsd: number | null;
  readonly end: string | null;
  readonly estimated: number | null;
}

/**
 * Each request that the model has answered is in the ledger once, with what the model has counted; what was cut off by a kill
 * is there by estimate. The build's account is the sum of them.
 */
async function examineMoney({ store, database, price }: DemoWorld, { id, requests }: DemoBuildEnd): Promise<void> {
  const tables = database.queries.withTables<{ ledgerEntries: Entry & { readonly build: string } }>();
  const entries = await tables
    .selectFrom("ledgerEntries")
    .select(["kind", "usage", "spentMicroUsd", "end", "estimated"])
    .where("build", "=", id)
    .execute();
  const { spentMicroUsd, reservedMicroUsd } = await store.ledger.balance(id);
  expect(reservedMicroUsd).toBe(0);
  expect(spentMicroUsd).toBe(entries.reduce((sum, entry) => sum + (entry.spentMicroUsd ?? 0), 0));
  const ofModels = entries.filter(({ kind }) => kind === "model");
  const [counted, cutOff] = [ofModels.filter(({ estimated }) => !estimated), ofModels.filter((one) => one.estimated)];
  const billed = new Map(requests.map(({ usage }) => [usage.input, usage]));
  for (const { usage, spentMicroUsd: spent } of counted) {
    const told = z.object({ input: z.int(), output: z.int() }).parse(JSON.parse(usage ?? "null"));
    expect(billed.get(told.input), "a request that the model does not know, or that is there twice").toMatchObject(
      told,
    );
    billed.delete(told.input);
    expect(spent).toBe(told.input * price.input + told.output * price.output);
  }
  expect(counted.length).toBeGreaterThan(cutOff.length);
  // What is left was asked, and its answer did not come to its end.
  expect(billed.size, JSON.stringify(cutOff)).toBeLessThanOrEqual(cutOff.length);
}

/** Nothing is left but main's preview. */
export async function examineRest({ provider, stateDirectory }: DemoWorld, id: BuildId): Promise<void> {
  const left = (await provider.list()).filter(({ labels }) => labels["build"] === id);
  expect(left.map(({ labels }) => labels["purpose"])).toEqual(["preview"]);
  const git = gitOf(stateDirectory, id);
  expect(await git("for-each-ref", "--format=%(refname)")).toBe("refs/heads/main");
}

/** All that runs belongs to a sandbox that is in the books, or is the server or its keeper. */
export async function examineProcesses({ provider, stateDirectory }: DemoWorld): Promise<void> {
  const known = (await provider.list()).filter(({ state }) => state === "running").map(({ id }) => id);
  expect(
    sandboxesOf(stateDirectory)
      .map(({ id }) => id)
      .sort(),
  ).toEqual(known.sort());
}

/** Once the server, all sandboxes and their keeper have ended. */
export function examineNothingLeft({ stateDirectory }: DemoWorld): void {
  expect(processesOf(stateDirectory).map(({ pid, argv }) => `${pid} ${argv.join(" ")}`)).toEqual([]);
  expect(mountsOf(stateDirectory)).toEqual([]);
}
