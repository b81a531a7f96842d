import { stat } from "node:fs/promises";
import { basename, posix, resolve } from "node:path";
import { type FileInfo, hasCode } from "@slipway/contract";
import { type Bytes, readLocal, type Sandbox, type SandboxFiles, walkTree } from "@slipway/sandbox";
import type { Context } from "../../../input/command.ts";
import { UsageError } from "../../../input/failure.ts";
import type { LeftOut } from "./hold.ts";
import { type Copied, counted, type Endpoint, isContentOnly } from "./transfer.ts";

type Source = Exclude<Endpoint, { kind: "sandbox" }>;

/** Copies a file, a tree or standard input into a sandbox. */
export async function copyIn(context: Context, from: Source, sandbox: Sandbox, path: string): Promise<Copied> {
  const options = counted(context);
  const { signal } = options;
  const existing = await statOrNone(sandbox.files, path, signal);
  const intoDirectory = existing?.type === "directory" || path.endsWith("/");
  if (from.kind === "standard") {
    if (intoDirectory) throw new UsageError(`${path} is a directory.`, "Name the file to write standard input to.");
    return writeFile(sandbox, path, standardInput(context, options.onBytes), signal);
  }
  const source = await stat(from.path);
  const below = posix.join(path, basename(resolve(from.path)));
  if (source.isDirectory()) {
    const leftOut: LeftOut[] = [];
    const target = intoDirectory && !isContentOnly(from.path) ? below : path;
    await sandbox.files.mkdir(target, { signal });
    const onLeftOut = (left: string, reason: string) => void leftOut.push({ path: left, reason });
    const copied = await sandbox.files.upload(target, walkTree(from.path, { ...options, onLeftOut }), { signal });
    return { ...copied, leftOut };
  }
  const mode = source.isFile() ? source.mode & 0o777 : undefined;
  return writeFile(sandbox, intoDirectory ? below : path, readLocal(from.path, options), signal, mode);
}

async function writeFile(
  sandbox: Sandbox,
  path: string,
  content: Bytes,
  signal: AbortSignal,
  mode?: number,
): Promise<Copied> {
  const { bytes } = await sandbox.files.write(path, content, { signal, ...(mode !== undefined && { mode }) });
  return { entries: 1, bytes, leftOut: [] };
}

async function* standardInput(context: Context, onBytes: (bytes: number) => void): AsyncGenerator<Uint8Array> {
  for await (const chunk of context.io.stdin) {
    const bytes = typeof chunk === "string" ? Buffer.from(chunk) : (chunk as Uint8Array);
    onBytes(bytes.length);
    yield bytes;
  }
}

async function statOrNone(files: SandboxFiles, path: string, signal: AbortSignal): Promise<FileInfo | undefined> {
  try {
    return await files.stat(path, { signal, followSymlink: true });
  } catch (error) {
    if (hasCode(error, "file_not_found")) return undefined;
    throw error;
  }
}
