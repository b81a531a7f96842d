import { constants } from "node:fs";
import { access, mkdir, stat, writeFile } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { isKernelPath } from "@slipway/contract";
import { UsageError } from "../../input/failure.ts";

const ownDirectory = ".slipway";

/** Throws if the directory is not writable, before any money is spent. */
export async function checkOut(out: string = ownDirectory): Promise<void> {
  const directory = resolve(out);
  const refuse = (why: string) => new UsageError(`--out: ${why}.`, "Choose a writable directory.");
  if (isKernelPath(directory)) throw refuse(`${directory} cannot hold files`);
  for (let path = directory; ; path = dirname(path)) {
    const found = await stat(path).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== "ENOENT" && error.code !== "ENOTDIR") throw refuse(error.message);
    });
    if (found === undefined) continue;
    if (!found.isDirectory()) throw refuse(`${path} is not a directory`);
    return await access(path, constants.W_OK | constants.X_OK).catch((error: Error) => {
      throw refuse(error.message);
    });
  }
}

/** Writes JSON files to the given directory, or to one of the build's own that git ignores. */
export async function writeFiles(
  { out, id }: { readonly out: string | undefined; readonly id: string },
  files: Readonly<Record<string, unknown>>,
): Promise<string[]> {
  const directory = resolve(out ?? join(ownDirectory, id));
  await mkdir(directory, { recursive: true });
  if (out === undefined) await ignore(resolve(ownDirectory));
  const paths: string[] = [];
  for (const [name, content] of Object.entries(files)) {
    const path = join(directory, name);
    await writeFile(path, `${JSON.stringify(content, null, 2)}\n`);
    paths.push(path);
  }
  return paths;
}

/** Leaves an existing file alone: it is the user's. */
async function ignore(directory: string): Promise<void> {
  await writeFile(join(directory, ".gitignore"), "*\n", { flag: "wx" }).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "EEXIST") throw error;
  });
}
