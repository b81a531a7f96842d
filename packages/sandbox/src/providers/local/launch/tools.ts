import { createHash, randomUUID } from "node:crypto";
import { access, readFile, rename, rm, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { SlipwayError } from "@slipway/contract";
import type { Tool } from "../record.ts";
import { copyTree, surveyTree, type TreePart } from "./tool-tree.ts";

/** Puts the host's directories of programs into the state directory, once for each content. */
export interface Tools {
  /** What the names stand for at present. */
  publish(names: readonly string[]): Promise<Tool[]>;
}

/** Of a tree that is not whole. */
export const growingSuffix = ".new";
/** A mark's name tells how a source looked; it holds the digest of the content it had then. Its age tells when it was last asked for. */
export const markSuffix = ".digest";

/** `sources`: the host's directories by the names that sandboxes know them by. `prepare` sees to it that `directory` is there. */
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
    throw new SlipwayError("invalid_settings", `the tool ${name}: ${(error as Error).message}`, { cause: error });
  }
}

/** Changes whenever the content may have: reading it all would take long. */
function looksOf(source: string, parts: readonly TreePart[]): string {
  return createHash("sha256")
    .update(JSON.stringify([source, parts]))
    .digest("hex");
}

/** Null when the source has to be copied. A mark in use is kept from the garbage collector, its tree with it. */
async function readMark(directory: string, mark: string): Promise<string | null> {
  try {
    await utimes(mark, new Date(), new Date());
    const digest = await readFile(mark, "utf8");
    // A machine that lost power may have left it empty.
    if (!/^[0-9a-f]{64}$/.test(digest)) return null;
    await access(join(directory, digest));
    return digest;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw error;
  }
}

/** The tree appears under its digest when it is whole. Of two processes that copy the same, the later one's is dropped. */
async function copyIn(directory: string, mark: string, source: string, parts: readonly TreePart[]): Promise<string> {
  const growing = join(directory, `${randomUUID()}${growingSuffix}`);
  const growingMark = `${growing}-mark`;
  try {
    const digest = await copyTree(source, parts, growing);
    // First: a tree of that digest that nobody has asked for in long is kept from then on.
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
  return new SlipwayError("invalid_request", `tools: there is no ${name}; the host has ${known.join(", ") || "none"}`);
}
