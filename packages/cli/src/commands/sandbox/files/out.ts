import { createWriteStream, statSync } from "node:fs";
import { lstat, realpath } from "node:fs/promises";
import { basename, dirname, join, posix, resolve } from "node:path";
import { pipeline } from "node:stream/promises";
import { SlipwayError } from "@slipway/contract";
import type { Sandbox } from "@slipway/sandbox";
import type { Context } from "../../../input/command.ts";
import { replaceFile, type WriteOptions, writeTree } from "./hold.ts";
import { type Copied, counted, type Endpoint, isContentOnly } from "./transfer.ts";

type Destination = Exclude<Endpoint, { kind: "sandbox" }>;

/** Copies a file or tree out of a sandbox. Contents and names are untrusted; the destination is the user's. */
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

/** An existing directory receives the tree under its own name, which must not be a link. */
async function treeTarget(from: string, to: string): Promise<string> {
  if (!statSync(to, { throwIfNoEntry: false })?.isDirectory() || isContentOnly(from)) return to;
  const target = join(to, posix.basename(from));
  if ((await lstat(target).catch(() => undefined))?.isSymbolicLink()) {
    throw new SlipwayError("path_outside", `${target} is a local link; Slipway does not write through links.`);
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

/** Follows a link that the user names as the destination; replaces one inside a directory. */
async function writeLocal(to: string, name: string, source: FileSource, options: WriteOptions): Promise<number> {
  const existing = statSync(to, { throwIfNoEntry: false });
  if (existing?.isDirectory() || to.endsWith("/")) return replaceFile(await realpath(to), name, source, options);
  if (existing && !existing.isFile()) return writeThrough(to, source, options);
  const file = existing ? await realpath(to) : resolve(to);
  return replaceFile(await realpath(dirname(file)), basename(file), source, options);
}

/** Writes to pipes and devices instead of replacing them. */
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
