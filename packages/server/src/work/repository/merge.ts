import { type Cut, cutText } from "./changes.ts";
import type { Git, GitOptions } from "./git.ts";
import { type Blob, fieldsOf, isBinary, readBlobs } from "./objects.ts";
import { asRefusal } from "./quarantine/refusal.ts";

export type Merged =
  | { readonly clean: true; readonly tree: string }
  | {
      readonly clean: false;
      readonly conflicts: readonly Conflict[];
      /** Conflicts that are not among them, being too many. */
      readonly more: number;
    };

/** A path that git can not merge, with what an agent needs to do so. */
export interface Conflict {
  readonly path: string;
  /** Git's own words, with the names of the two commits in them. */
  readonly messages: readonly string[];
  readonly base: Side | null;
  readonly ours: Side | null;
  readonly theirs: Side | null;
  /** The file as far as git could merge it, with both sides of each conflict between markers; null: it is not a text. */
  readonly marked: Cut | null;
}

/** The file on one side; its text is null when it is a binary or too large. */
export interface Side {
  readonly mode: string;
  readonly bytes: number;
  readonly text: Cut | null;
}

export interface MergeLimits {
  readonly conflicts: number;
  readonly sideBytes: number;
}

export const usualMergeLimits: MergeLimits = { conflicts: 50, sideBytes: 16 * 1024 };

const readLimits = { eachBytes: 1024 ** 2, totalBytes: 32 * 1024 ** 2 };

/** Merges two commits into a tree, by their own merge base. */
export async function mergeTrees(
  git: Git,
  ours: string,
  theirs: string,
  limits: MergeLimits,
  options: Pick<GitOptions, "signal"> = {},
): Promise<Merged> {
  const args = ["merge-tree", "--write-tree", "-z", "--messages", ours, theirs];
  return await asRefusal("git can not merge it", async () => {
    const { exitCode, stdout } = await git.run(args, { ...options, expected: [0, 1] });
    const [tree = "", ...fields] = fieldsOf(stdout);
    if (exitCode === 0) return { clean: true, tree };
    const parsed = parseConflicts(fields);
    const shown = parsed.slice(0, limits.conflicts);
    const names = shown.flatMap(({ stages }) => [...stages.values()].map(({ name }) => name));
    const blobs = await readBlobs(git, names, readLimits, options);
    const conflicts: Conflict[] = [];
    for (const { path, messages, stages } of shown) {
      const side = (stage: string) => sideOf(stages.get(stage), blobs, limits);
      const marked = stages.size < 2 ? null : await markedText(git, `${tree}:${path}`, limits, options);
      conflicts.push({ path, messages, base: side("1"), ours: side("2"), theirs: side("3"), marked });
    }
    return { clean: false, conflicts, more: parsed.length - shown.length };
  });
}

interface Stage {
  readonly mode: string;
  readonly name: string;
}

interface ParsedConflict {
  readonly path: string;
  readonly messages: string[];
  readonly stages: Map<string, Stage>;
}

/** Fields `<mode> <name> <stage>\t<path>`, an empty one, then of each message: how many paths, the paths, its kind, its text. */
function parseConflicts(fields: readonly string[]): ParsedConflict[] {
  const byPath = new Map<string, ParsedConflict>();
  const at = (path: string) => {
    const found: ParsedConflict = byPath.get(path) ?? { path, messages: [], stages: new Map() };
    byPath.set(path, found);
    return found;
  };
  const rest = fields.values();
  for (const field of rest) {
    if (field === "") break;
    const tab = field.indexOf("\t");
    const [mode = "", name = "", stage = ""] = field.slice(0, tab).split(" ");
    at(field.slice(tab + 1)).stages.set(stage, { mode, name });
  }
  for (const count of rest) {
    const paths = Array.from({ length: Number(count) }, () => rest.next().value ?? "");
    const kind = rest.next().value ?? "";
    const text = (rest.next().value ?? "").trim();
    const path = paths.find((one) => byPath.has(one)) ?? paths[0];
    if (kind.startsWith("CONFLICT") && path !== undefined) at(path).messages.push(text);
  }
  return [...byPath.values()];
}

function sideOf(stage: Stage | undefined, blobs: ReadonlyMap<string, Blob>, limits: MergeLimits): Side | null {
  if (stage === undefined) return null;
  const { bytes = 0, content } = blobs.get(stage.name) ?? {};
  return { mode: stage.mode, bytes, text: textOf(content, limits) };
}

async function markedText(git: Git, name: string, limits: MergeLimits, options: Pick<GitOptions, "signal">) {
  const found = await git.run(["rev-parse", "--verify", "--quiet", "--end-of-options", name], {
    ...options,
    expected: [0, 1, 128],
  });
  const blob = found.stdout.toString("latin1").trim();
  if (blob === "") return null;
  const content = (await readBlobs(git, [blob], readLimits, options)).get(blob)?.content;
  if (content === undefined || !content.includes("<<<<<<< ")) return null;
  return textOf(aroundMarkers(content), limits);
}

function textOf(content: Buffer | undefined, { sideBytes }: MergeLimits): Cut | null {
  return content === undefined || isBinary(content) ? null : cutText(content, sideBytes);
}

const linesAround = 20;
const mostLines = 2000;

/** The conflicts with some lines around each, so that one at the end of a long file is not cut off. */
function aroundMarkers(content: Buffer): Buffer {
  if (isBinary(content)) return content;
  const lines = content.toString("utf8").split("\n");
  const kept = new Set<number>();
  for (let index = 0, inside = false; index < lines.length && kept.size < mostLines; index++) {
    const text = lines[index] ?? "";
    const [opens, closes] = [text.startsWith("<<<<<<< "), text.startsWith(">>>>>>> ")];
    if (opens) inside = true;
    const reach = opens || closes ? linesAround : 0;
    if (inside) for (let near = index - reach; near <= index + reach; near++) kept.add(near);
    if (closes) inside = false;
  }
  const parts: string[] = [];
  for (const [index, text] of lines.entries()) {
    if (kept.has(index)) parts.push(text);
    else if (parts.at(-1) !== leftOut) parts.push(leftOut);
  }
  return Buffer.from(parts.join("\n"));
}

const leftOut = "[...]";
