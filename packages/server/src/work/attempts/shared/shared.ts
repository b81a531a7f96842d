import { randomUUID } from "node:crypto";
import { type BuildId, type ContextSection, printable } from "@slipway/contract";
import type { Bridge, Store } from "@slipway/engine";
import { readAll } from "../../all-records.ts";
import type { BuildRepository } from "../../repository/repository.ts";
import { type ContextSource, featureLines, fixLines, intentSections, verificationLines } from "./context.ts";

/**
 * Tells every attempt of a build about the others, and again on changes. Disposing it waits for messages under way and
 * stops further ones.
 */
export interface Shared extends AsyncDisposable {
  /** `by`: the speaker that changed it, who knows. */
  changed(part: PartName, by?: string): void;
  progress(speaker: string, words: string): void;
  /** All parts, for a new attempt. */
  parts(): Promise<SharedPart[]>;
}

export interface SharedPart {
  readonly name: PartName;
  readonly text: string;
}

export interface SharedOptions extends ContextSource {
  readonly bridge: Pick<Bridge, "read" | "claims" | "publish">;
  repository(): Promise<Pick<BuildRepository, "overlap">>;
  /** The last commits of attempts' branches, by speaker. */
  open(): ReadonlyMap<string, string>;
  /** Tells all working attempts. `isKnownTo`: the speaker that changed it. */
  tell(part: SharedPart, options: { readonly quiet: boolean; readonly isKnownTo: string | undefined }): void;
  warn(error: Error): void;
  /** How long to gather changes of a part, because each message costs every agent's attention. */
  readonly gatherMs?: Partial<Record<PartName, number>>;
}

interface PartKind {
  readonly gatherMs: number;
  /** The section of the build's shared context. Left out: its changes are messages. */
  readonly section?: ContextSection;
  /** Another part that changes with this one. */
  readonly follower?: PartName;
  /** Agents are told of changes; other parts are there for whoever looks. */
  readonly spoken?: true;
}

export type PartName =
  | ("plan" | "progress" | "discoveries" | "ownership" | "conflicts")
  | ("merges" | "errors" | "features" | "verifications" | "fixes");

const kinds: Readonly<Record<PartName, PartKind>> = {
  plan: { gatherMs: 5000, section: "plan", follower: "features" },
  progress: { gatherMs: 120_000, section: "phases" },
  discoveries: { gatherMs: 1000, section: "decisions", spoken: true },
  ownership: { gatherMs: 10_000, section: "ownership" },
  conflicts: { gatherMs: 1000, spoken: true },
  merges: { gatherMs: 5000, section: "merges", follower: "verifications" },
  errors: { gatherMs: 5000, section: "errors", follower: "fixes" },
  features: { gatherMs: 5000, section: "features" },
  verifications: { gatherMs: 5000, section: "verifications" },
  fixes: { gatherMs: 5000, section: "fixes" },
};

const maxCharacters = 16 * 1024;
const maxMessages = 40;
const maxLines = 200;
const maxMerges = 40;

export function createShared(options: SharedOptions): Shared {
  const { build, store, bridge, tell, warn } = options;
  const phases = new Map<string, string>();
  const timers = new Map<PartName, NodeJS.Timeout>();
  const flushing = new Set<Promise<void>>();
  const told = new Map<PartName, string>();
  /** Keys of published messages. */
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
    tell({ name, text }, { quiet: kinds[name].spoken !== true, isKnownTo: others.length === 0 ? changer : undefined });
    const { section } = kinds[name];
    if (section === undefined || isOver) return;
    await publishSection(bridge, build, { section, name, value: text }, randomUUID());
  };
  /** Its keys never change, so each section is published once, whoever does it. */
  const publishIntent = async () => {
    for (const [section, lines] of Object.entries(await intentSections(options))) {
      const payload = { section: section as ContextSection, name: section, value: boundedText(lines) };
      await publishSection(bridge, build, payload, "intent");
    }
  };
  let publishing: Promise<void> | undefined;
  const changed = (name: PartName, by?: string) => {
    if (isOver) return;
    const { follower } = kinds[name];
    if (follower !== undefined) changed(follower);
    changers.set(name, (changers.get(name) ?? new Set()).add(by));
    if (timers.has(name)) return;
    const timer = setTimeout(() => {
      const flushed: Promise<void> = flush(name)
        .catch(warn)
        .finally(() => flushing.delete(flushed));
      flushing.add(flushed);
    }, options.gatherMs?.[name] ?? kinds[name].gatherMs);
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
  // A failure does not matter: attempts hear of it on their own channel.
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

/** The latest messages of a topic. */
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

/** Pairs of open branches that overlap or conflict, as git sees them. */
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
      // The bridge may refuse the paths, or have this key with other files from before main moved.
      .catch(() => {});
  }
  return lines.slice(0, maxLines);
}

/** Candidates that wait or were sent back, with the reason, the latest last. The plan shows merged ones. */
async function mergeLines({ build, store, bridge }: SharedOptions, said: Set<string>): Promise<readonly string[]> {
  const candidates = (await readAll(store, build, "candidates")).toSorted((a, b) => a.createdAt - b.createdAt);
  const merged = new Set(candidates.filter(({ status }) => status === "merged").map(({ task }) => task));
  const lines = new Map<string, string>();
  for (const { id: candidate, task, status, reason } of candidates) {
    const text = `${task}: ${status}${reason === null ? "" : ` (${reason})`}`;
    // A task's last candidate counts.
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
