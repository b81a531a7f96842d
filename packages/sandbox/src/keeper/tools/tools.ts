import { createHash, randomUUID } from "node:crypto";
import { access, readFile, rename, rm, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { SlipwayError } from "@slipway/contract";
import type { Tool } from "../record.ts";
import { copyTree, surveyTree, type TreePart } from "./tool-tree.ts";

/** Copies tool directories into the state directory, once for each content. */
export interface Tools {
  /** The current trees of the names. */
  publish(names: readonly string[]): Promise<Tool[]>;
}

/** Marks an incomplete tree. */
export const growingSuffix = ".new";
/** A mark is named by a source's looks and holds the digest of its content. Its mtime is its last use. */
export const markSuffix = ".digest";

/** `sources`: directories of the host by their tool names. `prepare` makes sure that `directory` exists. */
export function createTools(
  directory: string,
  sources: Readonly<Record<string, string>>,
  prepare: () => Promise<void> = async () => {},
): Tools {
  const publishing = new Map<string, Promise<string>>();
  const publishOnce = (name: string, source: string): Promise<string> => {
    const running = publishing.get(name);
    if (running !== undefined) return running;
    const digest = publishTool(directory, name, source).finally(() => publishing.delete(name));
    publishing.set(name, digest);
    return digest;
  };
  const find = (name: string) => {
    const source = Object.hasOwn(sources, name) ? sources[name] : undefined;
    if (source === undefined) throw unknownTool(name, Object.keys(sources));
    return { name, source };
  };
  return {
    async publish(names) {
      const wanted = names.map(find);
      if (wanted.length > 0) await prepare();
      return await Promise.all(
        wanted.map(async ({ name, source }) => ({ name, digest: await publishOnce(name, source) })),
      );
    },
  };
}

async function publishTool(directory: string, name: string, source: string): Promise<string> {
  try {
    const parts = await surveyTree(source);
    const mark = join(directory, looksOf(source, parts) + markSuffix);
    return (await readMark(directory, mark)) ?? (await copyIn(directory, mark, source, parts));
  } catch (error) {
    throw new SlipwayError("invalid_settings", `Tool ${name}: ${(error as Error).message}`, { cause: error });
  }
}

/** Changes whenever the content may have. Reading all of it would be slow. */
function looksOf(source: string, parts: readonly TreePart[]): string {
  return createHash("sha256")
    .update(JSON.stringify([source, parts]))
    .digest("hex");
}

/** Null when the source must be copied. Marks the tree as used, for the garbage collector. */
async function readMark(directory: string, mark: string): Promise<string | null> {
  try {
    await utimes(mark, new Date(), new Date());
    const digest = await readFile(mark, "utf8");
    // A power loss may have emptied it.
    if (!/^[0-9a-f]{64}$/.test(digest)) return null;
    await access(join(directory, digest));
    return digest;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw error;
  }
}

/** The tree gets its digest as its name when it is complete. Of two equal copies, drops the later one. */
async function copyIn(directory: string, mark: string, source: string, parts: readonly TreePart[]): Promise<string> {
  const growing = join(directory, `${randomUUID()}${growingSuffix}`);
  const growingMark = `${growing}-mark`;
  try {
    const digest = await copyTree(source, parts, growing);
    // The mark first: it keeps an old tree of that digest from the garbage collector.
    await writeFile(growingMark, digest, { mode: 0o600 });
    await rename(growingMark, mark);
    await rename(growing, join(directory, digest)).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== "ENOTEMPTY" && error.code !== "EEXIST") throw error;
    });
    return digest;
  } finally {
    await rm(growing, { recursive: true, force: true });
    await rm(growingMark, { force: true });
  }
}

function unknownTool(name: string, known: readonly string[]): SlipwayError {
  return new SlipwayError("invalid_request", `Unknown tool ${name}. This host has: ${known.join(", ") || "none"}.`);
}
