import { createWriteStream, type Stats } from "node:fs";
import { lstat, realpath, stat } from "node:fs/promises";
import { basename, dirname, join, posix, resolve } from "node:path";
import { pipeline } from "node:stream/promises";
import { SlipwayError } from "@slipway/contract";
import type { Sandbox } from "@slipway/sandbox";
import type { Context } from "../../../input/command.ts";
import { type Endpoint, isContentOnly } from "./endpoint.ts";
import { replaceFile, type WriteOptions, writeTree } from "./hold.ts";
import { type Copied, counted } from "./transfer.ts";

type Destination = Exclude<Endpoint, { kind: "sandbox" }>;

/** Copies a file or a tree out of a sandbox. Its content and names are untrusted; the destination is the user's word. */
export async function copyOut(context: Context, sandbox: Sandbox, path: string, to: Destination): Promise<Copied> {
  const options = counted(context);
  const { signal } = options;
  const source = await sandbox.files.stat(path, { signal, followSymlink: true });
  if (source.type === "directory" && to.kind === "here") {
    return writeTree(await treeTarget(path, to.path), sandbox.files.download(path, { signal }), options);
  }
  if (source.type !== "file") {
    const code = source.type === "directory" ? "not_a_file" : "not_a_directory";
    throw new SlipwayError(
      code,
      `${path} is ${source.type === "directory" ? "a directory" : "neither a file nor a directory"}.`,
    );
  }
  const content = sandbox.files.read(path, { signal });
  const bytes =
    to.kind === "standard"
      ? await toStandardOutput(context, content)
      : await writeLocal(to.path, posix.basename(path), { content, mode: source.mode }, options);
  return { entries: 1, bytes, leftOut: [] };
}

/** A directory that exists takes the tree below its name, which must not be a link planted there. */
async function treeTarget(from: string, to: string): Promise<string> {
  if (!(await statOrNone(to))?.isDirectory() || isContentOnly(from)) return to;
  const target = join(to, posix.basename(from));
  if ((await lstat(target).catch(() => undefined))?.isSymbolicLink()) {
    throw new SlipwayError("path_outside", `${target} is a link here; nothing is written through it.`);
  }
  return target;
}

async function toStandardOutput(context: Context, content: AsyncIterable<Uint8Array>): Promise<number> {
  let bytes = 0;
  for await (const chunk of content) {
    await context.out.write(chunk);
    bytes += chunk.length;
  }
  return bytes;
}

interface FileSource {
  readonly content: AsyncIterable<Uint8Array>;
  readonly mode: number;
}

/** A link that the user names as the destination is followed; one that happens to lie in a directory is replaced. */
async function writeLocal(to: string, name: string, source: FileSource, options: WriteOptions): Promise<number> {
  const existing = await statOrNone(to);
  if (existing?.isDirectory() || to.endsWith("/")) return replaceFile(await realpath(to), name, source, options);
  if (existing && !existing.isFile()) return writeThrough(to, source, options);
  const file = existing ? await realpath(to) : resolve(to);
  return replaceFile(await realpath(dirname(file)), basename(file), source, options);
}

/** Pipes and devices are written to, not replaced. */
async function writeThrough(to: string, { content }: FileSource, { signal, onBytes }: WriteOptions): Promise<number> {
  let bytes = 0;
  async function* counting() {
    for await (const chunk of content) {
      bytes += chunk.length;
      onBytes(chunk.length);
      yield chunk;
    }
  }
  await pipeline(counting, createWriteStream(to, { flags: "w" }), { signal });
  return bytes;
}

async function statOrNone(path: string): Promise<Stats | undefined> {
  try {
    return await stat(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}
