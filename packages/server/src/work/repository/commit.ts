import type { Git } from "./git.ts";
import { checkObjectNames, line } from "./objects.ts";

export interface CommitOptions {
  readonly tree: string;
  readonly parents: readonly string[];
  readonly message: string;
  readonly atMs: number;
  readonly signal?: AbortSignal | undefined;
}

const author = { name: "Slipway", email: "slipway@localhost" };

/** Writes a commit object as it is, and returns its name. */
export async function writeRawCommit(git: Git, input: Uint8Array): Promise<string> {
  return line(await git.run(["hash-object", "-t", "commit", "-w", "--stdin"], { input }));
}

/** The same values give the same commit, so that making it again after a crash is safe. */
export async function writeCommit(git: Git, options: CommitOptions): Promise<string> {
  const { tree, parents, message, atMs, signal } = options;
  checkObjectNames(tree, ...parents);
  const date = `@${Math.floor(atMs / 1000)} +0000`;
  const as = (role: string) => ({
    [`GIT_${role}_NAME`]: author.name,
    [`GIT_${role}_EMAIL`]: author.email,
    [`GIT_${role}_DATE`]: date,
  });
  const args = ["commit-tree", tree, ...parents.flatMap((parent) => ["-p", parent]), "-F", "-"];
  const input = `${message.replaceAll("\0", "").trimEnd()}\n`;
  return line(await git.with({ ...as("AUTHOR"), ...as("COMMITTER") }).run(args, { input, signal }));
}
