import { randomUUID } from "node:crypto";
import { type BuildId, type ContextSection, printable } from "@slipway/contract";
import type { Bridge, Store } from "@slipway/engine";
import { readAll } from "../all-records.ts";
import type { BuildRepository } from "../repository/repository.ts";
import { type ContextSource, featureLines, fixLines, intentSections, verificationLines } from "./context.ts";

/**
 * What every attempt of a build is told of the others, and again when it changes. Its disposal waits for what is being said,
 * and nothing is said from then on.
 */
export interface Shared extends AsyncDisposable {
  /** `by`: whoever has changed it knows. */
  changed(part: PartName, by?: string): void;
  progress(speaker: string, words: string): void;
  /** All of it, for an attempt that begins. */
  parts(): Promise<SharedPart[]>;
}

export interface SharedPart {
  readonly name: PartName;
  readonly text: string;
}

export interface SharedOptions extends ContextSource {
  readonly bridge: Pick<Bridge, "read" | "claims" | "publish">;
  repository(): Promise<Pick<BuildRepository, "overlap">>;
  /** The last commits of attempts' branches that are not in main, by whose they are. */
  open(): ReadonlyMap<string, string>;
  /** To all that are at work. `isKnownTo`: the one who has changed it. */
  tell(part: SharedPart, options: { readonly quiet: boolean; readonly isKnownTo: string | undefined }): void;
  warn(error: Error): void;
  /** How long changes of a part are gathered before they are told: each costs every agent some of its attention. */
  readonly gatherMs?: Partial<Record<PartName, number>>;
}

const usualGatherMs = {
  plan: 5000,
  progress: 120_000,
  discoveries: 1000,
  ownership: 10_000,
  conflicts: 1000,
  merges: 5000,
  errors: 5000,
  features: 5000,
  verifications: 5000,
  fixes: 5000,
};
export type PartName = keyof typeof usualGatherMs;

/** The others are there for whoever looks. */
const spoken: ReadonlySet<PartName> = new Set(["discoveries", "conflicts"]);

/** What else changes with it. */
const followers: Partial<Record<PartName, PartName>> = { plan: "features", merges: "verifications", errors: "fixes" };

/** Where the build's shared context has it. Conflicts are messages of their own. */
const sections: Partial<Record<PartName, ContextSection>> = {
  plan: "plan",
  progress: "phases",
  ownership: "ownership",
  merges: "merges",
  discoveries: "decisions",
  errors: "errors",
  features: "features",
  verifications: "verifications",
  fixes: "fixes",
};

const maxCharacters = 16 * 1024;
const maxMessages = 40;
const maxLines = 200;
const maxMerges = 40;

export function createShared(options: SharedOptions): Shared {
  const { build, store, bridge, tell, warn } = options;
  const gatherMs = { ...usualGatherMs, ...options.gatherMs };
  const phases = new Map<string, string>();
  const timers = new Map<PartName, NodeJS.Timeout>();
  const flushing = new Set<Promise<void>>();
  const told = new Map<PartName, string>();
  /** Keys of messages that need not be published again. */
  const said = new Set<string>();
  const changers = new Map<PartName, Set<string | undefined>>();

  const render: Readonly<Record<PartName, () => Promise<readonly string[]>>> = {
    plan: () => planLines(store, build),
    progress: async () => [...phases].map(([speaker, words]) => `- ${speaker}: ${words}`),
    discoveries: () => messageLines(bridge, build, "discoveries"),
    errors: () => messageLines(bridge, build, "errors"),
    ownership: async () =>
      (await bridge.claims(build)).slice(0, maxLines).map(({ path, owner }) => `- ${path}: ${owner}`),
    conflicts: () => conflictLines(options),
    merges: () => mergeLines(options, said),
    features: () => featureLines(options),
    verifications: () => verificationLines(options),
    fixes: () => fixLines(options),
  };
  const textOf = async (name: PartName) => boundedText(await render[name]());
  let isOver = false;

  const flush = async (name: PartName) => {
    timers.delete(name);
    const [changer, ...others] = changers.get(name) ?? [];
    changers.delete(name);
    const text = await textOf(name);
    if (text === (told.get(name) ?? "")) return;
    told.set(name, text);
    tell({ name, text }, { quiet: !spoken.has(name), isKnownTo: others.length === 0 ? changer : undefined });
    const section = sections[name];
    if (section === undefined || isOver) return;
    await publishSection(bridge, build, { section, name, value: text }, randomUUID());
  };
  /** Once: under these keys they are there once, whoever publishes them. */
  const publishIntent = async () => {
    for (const [section, lines] of Object.entries(await intentSections(options))) {
      const payload = { section: section as ContextSection, name: section, value: boundedText(lines) };
      await publishSection(bridge, build, payload, "intent");
    }
  };
  let publishing: Promise<void> | undefined;
  const changed = (name: PartName, by?: string) => {
    if (isOver) return;
    const follower = followers[name];
    if (follower !== undefined) changed(follower);
    changers.set(name, (changers.get(name) ?? new Set()).add(by));
    if (timers.has(name)) return;
    const timer = setTimeout(() => {
      const flushed: Promise<void> = flush(name)
        .catch(warn)
        .finally(() => flushing.delete(flushed));
      flushing.add(flushed);
    }, gatherMs[name]);
    timer.unref();
    timers.set(name, timer);
  };
  return {
    changed,
    progress(speaker, words) {
      phases.set(speaker, words);
      changed("progress");
    },
    async parts() {
      publishing ??= publishIntent().catch(warn);
      await publishing;
      const names = Object.keys(render) as PartName[];
      const parts = await Promise.all(names.map(async (name) => ({ name, text: await textOf(name) })));
      return parts.filter(({ text }) => text !== "");
    },
    async [Symbol.asyncDispose]() {
      isOver = true;
      for (const timer of timers.values()) clearTimeout(timer);
      timers.clear();
      await Promise.all(flushing);
    },
  };
}

function boundedText(lines: readonly string[]): string {
  return printable(lines.join("\n")).slice(0, maxCharacters);
}

async function publishSection(
  bridge: Pick<Bridge, "publish">,
  build: BuildId,
  payload: { readonly section: ContextSection; readonly name: string; readonly value: string },
  key: string,
): Promise<void> {
  // The attempts hear of it by their own channel.
  await bridge
    .publish(build, { topic: "context", key: `context:${payload.name}:${key}`, from: "host", payload })
    .catch(() => {});
}

async function planLines(store: Pick<Store, "builds">, build: BuildId): Promise<readonly string[]> {
  const [plans, records] = [await readAll(store, build, "plans"), await readAll(store, build, "tasks")];
  const statuses = new Map(records.map(({ id, status }) => [id, status]));
  return plans
    .flatMap(({ tasks }) => tasks)
    .map(({ id, title, component }) => `- ${id} (${component}, ${statuses.get(id) ?? "pending"}): ${title}`);
}

/** The latest. */
async function messageLines(
  bridge: SharedOptions["bridge"],
  build: BuildId,
  topic: "discoveries" | "errors",
): Promise<readonly string[]> {
  const lines: string[] = [];
  for (let after = 0; ; ) {
    const { messages, next } = await bridge.read(build, { after, topics: [topic] });
    for (const message of messages) {
      if (message.topic !== topic) continue;
      const { title, text } = message.payload;
      lines.push(
        `- ${message.from}: ${title}${text === "" ? "" : `\n  ${text.replaceAll("\n", "\n  ").slice(0, 1000)}`}`,
      );
    }
    if (next === after || messages.length === 0) return lines.slice(-maxMessages);
    after = next;
  }
}

/** Which open branches have to do with each other, by git's own word. */
async function conflictLines({ build, bridge, repository, open }: SharedOptions): Promise<readonly string[]> {
  const owners = new Map([...open()].map(([speaker, commit]) => [commit, speaker]));
  if (owners.size < 2) return [];
  const overlaps = await (await repository()).overlap({ branches: [...owners.keys()] });
  const lines: string[] = [];
  for (const { commits, files, conflicts } of overlaps) {
    const between = commits.map((commit) => owners.get(commit) ?? "another");
    const paths = (conflicts.length > 0 ? conflicts : files).slice(0, 20);
    const what = conflicts.length > 0 ? "cannot be merged in" : "both change";
    const text = `${between.join(" and ")} ${what} ${paths.join(", ")}`;
    lines.push(`- ${text}`);
    await bridge
      .publish(build, {
        topic: "conflicts",
        key: `conflicts:${commits.join(":")}`,
        from: "host",
        payload: { paths, between, text: text.slice(0, 4000) },
      })
      // Paths that it does not take, or a message that is there with other files: main has moved since.
      .catch(() => {});
  }
  return lines.slice(0, maxLines);
}

/** What waits to be merged, and what was sent back and why, the latest last. What is merged is in the plan. */
async function mergeLines({ build, store, bridge }: SharedOptions, said: Set<string>): Promise<readonly string[]> {
  const candidates = (await readAll(store, build, "candidates")).toSorted((a, b) => a.createdAt - b.createdAt);
  const merged = new Set(candidates.filter(({ status }) => status === "merged").map(({ task }) => task));
  const lines = new Map<string, string>();
  for (const { id: candidate, task, status, reason } of candidates) {
    const text = `${task}: ${status}${reason === null ? "" : ` (${reason})`}`;
    // Of a task the last word counts.
    lines.delete(task);
    if (!merged.has(task)) lines.set(task, `- ${text}`);
    const key = `merge:${candidate}:${status}`;
    if (said.has(key)) continue;
    const message = { topic: "merge", key, from: "host", payload: { candidate, status, text } } as const;
    await bridge.publish(build, message).then(
      () => said.add(key),
      () => {},
    );
  }
  return [...lines.values()].slice(-maxMerges);
}
