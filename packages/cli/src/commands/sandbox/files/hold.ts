import { randomUUID } from "node:crypto";
import { constants, lstatSync } from "node:fs";
import { chmod, lstat, mkdir, open, realpath, rename, rm, symlink, unlink } from "node:fs/promises";
import { join } from "node:path";
import { SlipwayError } from "@slipway/contract";
import type { Bytes, TreeEntry } from "@slipway/sandbox";

export interface LeftOut {
  readonly path: string;
  readonly reason: string;
}

export interface WriteOptions {
  readonly signal: AbortSignal;
  readonly onBytes: (bytes: number) => void;
}

/**
 * Writes an untrusted tree below a local directory. Stops at an entry that would land outside it or pass through a link.
 * Makes links last, so that none of the tree's own exists while files are written.
 */
export async function writeTree(
  directory: string,
  entries: AsyncIterable<TreeEntry>,
  options: WriteOptions,
): Promise<{ entries: number; bytes: number; leftOut: LeftOut[] }> {
  await mkdir(directory, { recursive: true });
  const root = await realpath(directory);
  const links = new Map<string, string>();
  const modes = new Map<string, number>();
  const seen = new Set<string>();
  const leftOut: LeftOut[] = [];
  let bytes = 0;
  for await (const entry of entries) {
    options.signal.throwIfAborted();
    const parts = heldParts(entry.path);
    const path = parts.join("/");
    if (seen.has(path)) throw new SlipwayError("invalid_request", `The tree contains ${path || "its root"} twice.`);
    seen.add(path);
    if (entry.type === "directory") {
      await makeDirectories(root, parts);
      modes.set(path, entry.mode);
    } else if (parts.length === 0) {
      throw new SlipwayError("not_a_directory", "The tree's root is not a directory.");
    } else if (entry.type === "file") {
      const parent = await makeDirectories(root, parts.slice(0, -1));
      bytes += await replaceFile(parent, parts.at(-1) ?? "", entry, options);
    } else if (entry.type === "symlink") {
      links.set(path, entry.target);
    } else {
      leftOut.push({ path, reason: "neither a file, a directory nor a link" });
    }
  }
  leftOut.push(...(await makeLinks(root, links)));
  await setModes(root, modes);
  return { entries: seen.size - leftOut.length, bytes, leftOut };
}

/** The parts of an entry's path; none for the tree's root. */
function heldParts(path: string): string[] {
  const parts = path.split("/").filter((part) => part !== "" && part !== ".");
  if (path.startsWith("/") || parts.includes("..") || path.includes("\0")) {
    throw new SlipwayError("path_outside", `The tree has an entry outside itself: ${path}`);
  }
  return parts;
}

/** Makes missing directories and returns the real path, which it checks for links each time. */
async function makeDirectories(root: string, parts: readonly string[]): Promise<string> {
  const whole = join(root, ...parts);
  if ((await realpath(whole).catch(() => undefined)) === whole && (await lstat(whole)).isDirectory()) return whole;
  let path = root;
  for (const part of parts) {
    path = join(path, part);
    const stats = lstatSync(path, { throwIfNoEntry: false });
    if (!stats) await mkdir(path, 0o755);
    else if (stats.isSymbolicLink())
      throw new SlipwayError("path_outside", `${path} is a local link; Slipway does not write through links.`);
    else if (!stats.isDirectory()) throw new SlipwayError("not_a_directory", `${path} exists and is not a directory.`);
  }
  return path;
}

/** Writes a temporary file and renames it: replaces a link instead of following it, and readers never see half a file. */
export async function replaceFile(
  parent: string,
  name: string,
  source: { readonly content: Bytes; readonly mode: number },
  options: WriteOptions,
): Promise<number> {
  const temporary = join(parent, `.slipway-${randomUUID()}`);
  const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;
  try {
    const bytes = await writeNew(temporary, flags, source, options);
    await rename(temporary, join(parent, name));
    return bytes;
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
}

async function writeNew(
  path: string,
  flags: number,
  { content, mode }: { readonly content: Bytes; readonly mode: number },
  { signal, onBytes }: WriteOptions,
): Promise<number> {
  await using file = await open(path, flags, 0o600);
  let bytes = 0;
  for await (const chunk of chunksOf(content)) {
    signal.throwIfAborted();
    await file.writeFile(chunk);
    bytes += chunk.length;
    onBytes(chunk.length);
  }
  // Without set-user-ID and the like, which would take effect on this machine.
  await file.chmod(mode & 0o777);
  return bytes;
}

async function* chunksOf(content: Bytes): AsyncGenerator<Uint8Array> {
  if (typeof content === "string") yield Buffer.from(content);
  else if (content instanceof Uint8Array) yield content;
  else yield* content;
}

async function makeLinks(root: string, links: ReadonlyMap<string, string>): Promise<LeftOut[]> {
  const leftOut: LeftOut[] = [];
  for (const [path, target] of links) {
    const parts = path.split("/");
    if (!staysInside(parts, target)) {
      leftOut.push({ path, reason: `link points outside: ${target}` });
      continue;
    }
    const place = join(await makeDirectories(root, parts.slice(0, -1)), parts.at(-1) ?? "");
    const stats = lstatSync(place, { throwIfNoEntry: false });
    if (stats?.isDirectory()) {
      leftOut.push({ path, reason: "a directory is in place of the link" });
      continue;
    }
    if (stats) await unlink(place);
    await symlink(target, place);
  }
  return leftOut;
}

/**
 * Accepts `../` steps first, no higher than the tree's root, then names. A `..` after a name could escape through
 * another link.
 */
export function staysInside(parts: readonly string[], target: string): boolean {
  if (target === "" || target.startsWith("/") || target.includes("\0")) return false;
  const steps = target.split("/").filter((step) => step !== "" && step !== ".");
  const firstName = steps.findIndex((step) => step !== "..");
  const ups = firstName < 0 ? steps.length : firstName;
  return ups <= parts.length - 1 && !steps.slice(ups).includes("..");
}

/** Runs last and deepest first: a mode may forbid writing. The owner keeps the right to remove the directory. */
async function setModes(root: string, modes: ReadonlyMap<string, number>): Promise<void> {
  for (const [path, mode] of [...modes].reverse()) {
    const real = await makeDirectories(root, heldParts(path));
    await chmod(real, (mode & 0o777) | 0o700);
  }
}
