import { type Intent, lockedIntentSchema, SlipwayError, surfaceLines, type Task } from "@slipway/contract";
import { type AttemptWork, patternScope, type Store, type TaskRecord, type WorkingBuild } from "@slipway/engine";
import { readAll } from "../all-records.ts";
import type { Kept } from "./kept.ts";
import { speakerOf } from "./names.ts";
import type { AttemptSurroundings } from "./surroundings.ts";

type Order = Kept["order"];

/**
 * The commands of any project, the same as gates use. An existing repository without a lock file gets none.
 */
const commandsIn = (mode: WorkingBuild["mode"]) => ({
  install:
    "if [ -e pnpm-lock.yaml ]; then pnpm install --frozen-lockfile; elif [ -e yarn.lock ]; then yarn install --frozen-lockfile; " +
    `elif [ -e package-lock.json ]; then npm ci; elif [ -e package.json ]; then npm install${mode === "new" ? "" : " --no-package-lock"}; fi; ` +
    "if [ -e requirements.txt ]; then python3 -m venv .venv && .venv/bin/pip install -r requirements.txt; fi",
  build: "if [ -e package.json ]; then npm run --if-present build; fi",
  test: "if [ -e package.json ]; then npm run --if-present test; elif [ -e .venv ]; then .venv/bin/python -m pytest; fi",
});

const maxIntentCharacters = 12_000;
const maxSurfaceCharacters = 64 * 1024;
const maxEarlier = 12;
const maxEarlierCharacters = 8000;
const maxFixCharacters = 16_000;

/** Stores what the attempt is to do, so that every server that continues it finds the same. */
export async function beginAttempt(world: AttemptSurroundings, wanted: AttemptWork): Promise<Kept> {
  const { build, store, kept, repository, shared } = world;
  const base = await (await repository()).main();
  const secrets = (await world.secrets.of(build.id)).map(({ value: _value, ...named }) => named);
  const order = { ...(await readOrder(store, build, wanted, base)), secrets, shared: await shared.parts() };
  const { id, task, number, respawn } = wanted;
  const { gpu = null } = await plannedTask(store, build, task);
  const begun: Kept = {
    id,
    task,
    number,
    order,
    gpu,
    respawn,
    part: 0,
    sandbox: null,
    heard: 0,
    refusedMicroUsd: null,
    snapshots: [],
    checkpoints: 0,
    offered: null,
    tip: null,
    offeredBytes: 0,
  };
  await kept.write(begun);
  return begun;
}

/** The order of an attempt, from the records of its task. Leaves out how criteria are checked. */
export async function readOrder(
  store: Pick<Store, "builds" | "patterns">,
  build: WorkingBuild,
  item: AttemptWork,
  base: string,
): Promise<Order> {
  const task = await plannedTask(store, build, item.task);
  const [known] = await store.builds.records(build.id, "intents");
  const record = (await readAll(store, build.id, "tasks")).find(({ id }) => id === item.task);
  const { locked } = (known?.intent ?? {}) as { readonly locked?: unknown };
  const { intent } = lockedIntentSchema.parse(locked);
  const [fix] = item.pattern === null ? [] : await store.patterns.find(patternScope(build), [item.pattern]);
  return {
    task: { id: task.id, title: task.title, description: task.description, expectedFiles: task.expectedFiles },
    criteria: intent.criteria
      .filter(({ id }) => task.criteria.includes(id))
      .map(({ id, statement }) => ({ id, statement })),
    intent: shortIntent(intent),
    surface: surfaceText(intent),
    commands: commandsIn(build.mode),
    branch: `attempt/${speakerOf(item)}`,
    base,
    installed: false,
    from: item.from,
    level: item.level,
    earlier: failuresOf(record),
    ...(fix !== undefined && { knownFix: fix.fix.slice(0, maxFixCharacters) }),
    secrets: [],
    shared: [],
    maxFixes: 3,
    commandMs: 600_000,
    offers: "/var/tmp/slipway-offers",
  };
}

async function plannedTask(store: Pick<Store, "builds">, build: WorkingBuild, id: string): Promise<Task> {
  const plans = await readAll(store, build.id, "plans");
  const task = plans.flatMap(({ tasks }) => tasks).find((one) => one.id === id);
  if (task === undefined) throw new SlipwayError("internal", `no plan of ${build.id} has a task ${id}`);
  return task;
}

function shortIntent({ request, appType, character, coreValue, identity, antiPatterns, workflows }: Intent): string {
  const { mood, colours, typography, layout } = identity;
  return [
    `The request: ${request}`,
    `It is ${appType}. ${character}`,
    `What it is for: ${coreValue}`,
    `Workflows:\n${workflows.map(({ title, steps, success }) => `- ${title}: ${steps.join("; ")}. ${success}`).join("\n")}`,
    `How it looks: ${mood} Colours: ${colours.join(", ")}. ${typography} ${layout}`,
    `What it must not be: ${antiPatterns.join("; ")}`,
  ]
    .join("\n\n")
    .slice(0, maxIntentCharacters);
}

function surfaceText({ surface }: Intent): string {
  if (surface === undefined) return "";
  const sections = surfaceLines(surface).map(
    ([title, lines]) => `${title}:\n${lines.map((line) => `- ${line}`).join("\n")}`,
  );
  return sections.join("\n\n").slice(0, maxSurfaceCharacters);
}

/** `message`: the original text. */
interface Failure {
  readonly error: string;
  readonly message?: string;
}

function failuresOf(record: TaskRecord | undefined): string[] {
  const { failures = [] } = (record?.details ?? {}) as { readonly failures?: readonly Failure[] };
  return failures.slice(-maxEarlier).map(({ error, message = error }) => message.slice(0, maxEarlierCharacters));
}
