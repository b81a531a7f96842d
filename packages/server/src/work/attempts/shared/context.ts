import {
  type BuildId,
  type ContextSection,
  type Finding,
  type Intent,
  isOnMain,
  lockedIntentSchema,
  type TaskStatus,
} from "@slipway/contract";
import type { Store } from "@slipway/engine";
import { readAll } from "../../all-records.ts";

/** The source of the parts of shared context that follow from a build's records. */
export interface ContextSource {
  readonly build: BuildId;
  readonly store: Pick<Store, "builds" | "patterns">;
  /** The scope of remembered fixes. */
  readonly scope: string;
}

const maxLines = 200;
const maxResults = 60;
/** More than are shown, because an older candidate may be judged after newer ones. */
const maxRead = 300;
const maxFixes = 20;
const maxFixCharacters = 700;
const maxFindingCharacters = 200;

/** The features of the plan: done, in work or open, by their tasks. */
export async function featureLines({ store, build }: ContextSource): Promise<readonly string[]> {
  const [plans, records] = [await readAll(store, build, "plans"), await readAll(store, build, "tasks")];
  const statuses = new Map(records.map(({ id, status }) => [id, status]));
  const features = new Map<string, TaskStatus[]>();
  for (const { id, features: names } of plans.flatMap(({ tasks }) => tasks)) {
    for (const name of names) features.set(name, [...(features.get(name) ?? []), statuses.get(id) ?? "pending"]);
  }
  return [...features].slice(0, maxLines).map(([name, all]) => {
    const merged = all.filter(isOnMain).length;
    const isOpen = all.every((status) => status === "pending");
    const word = merged === all.length ? "done" : isOpen ? "open" : "in work";
    return `- ${name}: ${word}, ${merged} of ${all.length} tasks merged`;
  });
}

/** Gate results of the newest candidates, the latest last. */
export async function verificationLines({ store, build }: ContextSource): Promise<readonly string[]> {
  const newest = { isReversed: true, limit: maxRead };
  const candidates = await store.builds.records(build, "candidates", newest);
  const tasks = new Map(candidates.map(({ id, task }) => [id, task]));
  const results = await store.builds.records(build, "gateResults", newest);
  const inOrder = results.toSorted((a, b) => a.endedAt - b.endedAt);
  return inOrder.slice(-maxResults).map(({ candidate, gate, verdict, findings }) => {
    const [first] = findings as readonly Partial<Finding>[];
    const why = first?.text === undefined ? "" : `: ${first.text.split("\n", 1)[0]?.slice(0, maxFindingCharacters)}`;
    return `- ${tasks.get(candidate) ?? candidate}, ${gate}: ${verdict}${why}`;
  });
}

/** Fixes from this project's past for errors of this build. */
export async function fixLines({ store, build, scope }: ContextSource): Promise<readonly string[]> {
  const errors = (await readAll(store, build, "tasks")).flatMap(({ details }) => {
    const { failures } = details as { readonly failures?: readonly { readonly error: string }[] };
    return (failures ?? []).map(({ error }) => error);
  });
  if (errors.length === 0) return [];
  const known = await store.patterns.find(scope, [...new Set(errors)].slice(-maxLines));
  return known.slice(-maxFixes).map(({ error, fix }) => {
    const said = [error, fix].map((text) => text.trim().replaceAll("\n", "\n  ").slice(0, maxFixCharacters));
    return `- ${said.join("\n  fixed by:\n  ")}`;
  });
}

/** The sections of the locked intent, which never change. */
export async function intentSections({
  store,
  build,
}: ContextSource): Promise<Partial<Record<ContextSection, readonly string[]>>> {
  const [record] = await store.builds.records(build, "intents");
  const { locked } = (record?.intent ?? {}) as { readonly locked?: unknown };
  const read = lockedIntentSchema.safeParse(locked);
  return read.success ? sectionsOf(read.data.intent) : {};
}

function sectionsOf({ request, appType, character, coreValue, criteria, identity, antiPatterns }: Intent) {
  const { mood, colours, typography, layout } = identity;
  return {
    intent: [request, `${appType}. ${character} ${coreValue}`, ...criteria.map(({ statement }) => `- ${statement}`)],
    rules: antiPatterns.map((rule) => `- not: ${rule}`),
    preferences: [`- mood: ${mood}`, `- colours: ${colours.join(", ")}`, `- ${typography}`, `- ${layout}`],
  } as const;
}
