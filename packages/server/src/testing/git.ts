import { execFile } from "node:child_process";
import { lstat, mkdir, readdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);
const settings = ["-c", "user.name=Bo", "-c", "user.email=bo@localhost", "-c", "protocol.file.allow=always"];

/** As somebody does it in a repository of their own. */
export async function git(directory: string, ...args: string[]): Promise<string> {
  return (await run("git", [...settings, "-C", directory, ...args])).stdout.trim();
}

export async function put(directory: string, files: Readonly<Record<string, string>>): Promise<void> {
  for (const [path, content] of Object.entries(files)) {
    await mkdir(dirname(join(directory, path)), { recursive: true });
    await writeFile(join(directory, path), content);
  }
}

/** Commits these files, with all else that has changed. */
export async function commit(directory: string, message: string, files: Readonly<Record<string, string>>) {
  await put(directory, files);
  await git(directory, "add", ".");
  await git(directory, "commit", "-qm", message);
  return await git(directory, "rev-parse", "HEAD");
}

/** Somebody's repository, whose list was changed once. */
export async function makeTheirs(directory: string): Promise<string> {
  await git("/", "init", "-q", "-b", "trunk", directory);
  for (const text of ["one", "two"]) await commit(directory, text, { "list.txt": `${text}\n` });
  return directory;
}

/** All that is in a directory, with the index, the refs and every object, and when it was last written. */
export async function stateOf(directory: string): Promise<string[]> {
  const names = (await readdir(directory, { recursive: true })).toSorted();
  return await Promise.all(
    names.map(async (name) => {
      const { mode, ino, size, mtimeNs } = await lstat(join(directory, name), { bigint: true });
      return `${name} ${mode} ${ino} ${size} ${mtimeNs}`;
    }),
  );
}
