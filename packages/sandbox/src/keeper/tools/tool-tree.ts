import { createHash, type Hash } from "node:crypto";
import { constants, createReadStream } from "node:fs";
import { chmod, copyFile, lstat, mkdir, readdir, readlink, symlink } from "node:fs/promises";
import { join, posix } from "node:path";

/** An entry of a tool directory. A file's stamp changes with it. */
export type TreePart =
  | { readonly type: "directory"; readonly path: string }
  | { readonly type: "file"; readonly path: string; readonly executable: boolean; readonly stamp: string }
  | { readonly type: "link"; readonly path: string; readonly target: string };

/** A larger directory is probably a mistake. */
const mostParts = 200_000;

/** All entries below a directory, parents first, in a fixed order, without special files and links that lead out. */
export async function surveyTree(root: string): Promise<TreePart[]> {
  const parts: TreePart[] = [];
  const visit = async (directory: string) => {
    const entries = await readdir(join(root, directory), { withFileTypes: true });
    entries.sort((a, b) => (a.name < b.name ? -1 : 1));
    for (const entry of entries) {
      const path = posix.join(directory, entry.name);
      if (entry.isFile()) parts.push(await filePart(root, path));
      else if (entry.isSymbolicLink()) parts.push(...(await linkPart(root, path)));
      else if (entry.isDirectory()) {
        parts.push({ type: "directory", path });
        await visit(path);
      }
      if (parts.length > mostParts) throw new Error(`${root} has more than ${mostParts} entries.`);
    }
  };
  await visit("");
  return parts;
}

async function filePart(root: string, path: string): Promise<TreePart> {
  const { mode, size, mtimeNs, ctimeNs, ino } = await lstat(join(root, path), { bigint: true });
  return { type: "file", path, executable: (mode & 0o111n) !== 0n, stamp: `${size} ${mtimeNs} ${ctimeNs} ${ino}` };
}

async function linkPart(root: string, path: string): Promise<TreePart[]> {
  const target = await readlink(join(root, path));
  const leadsTo = posix.join(posix.dirname(path), target);
  const leadsOut = posix.isAbsolute(target) || leadsTo === ".." || leadsTo.startsWith("../");
  return leadsOut ? [] : [{ type: "link", path, target }];
}

/**
 * Copies the parts into the new directory `to`, readable by all and writable by the owner. Returns the digest of the
 * copy's names, modes, sizes and content.
 */
export async function copyTree(root: string, parts: readonly TreePart[], to: string): Promise<string> {
  const digest = createHash("sha256");
  await makeDirectory(to);
  for (const part of parts) {
    const target = join(to, part.path);
    if (part.type === "directory") await makeDirectory(target);
    else if (part.type === "link") await symlink(part.target, target);
    else await copyProgram(join(root, part.path), target, part.executable);
    await addTo(digest, part, target);
  }
  return digest.digest("hex");
}

async function makeDirectory(path: string): Promise<void> {
  await mkdir(path);
  await chmod(path, 0o755);
}

/** Shares blocks where the file system can. No hard link: a later write to the source would change what sandboxes run. */
async function copyProgram(from: string, to: string, executable: boolean): Promise<void> {
  await copyFile(from, to, constants.COPYFILE_FICLONE);
  await chmod(to, executable ? 0o755 : 0o644);
}

async function addTo(digest: Hash, part: TreePart, copy: string): Promise<void> {
  if (part.type !== "file") return void digest.update(`${JSON.stringify(part)}\n`);
  const { type, path, executable } = part;
  const { size } = await lstat(copy);
  digest.update(`${JSON.stringify({ type, path, executable, size })}\n`);
  for await (const chunk of createReadStream(copy)) digest.update(chunk);
}
