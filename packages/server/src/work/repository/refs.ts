import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { type Git, GitFailed } from "./git.ts";
import { line } from "./objects.ts";

/**
 * The refs of one repository. Every writer holds a lock that the kernel frees with its holder. So a lock file of git
 * that exists while nobody holds this lock belongs to a killed git.
 */
export interface Refs {
  /** Undefined: the ref does not exist. */
  read(ref: string): Promise<string | undefined>;
  /** Moves a ref in one atomic step. Undefined: the ref does not exist before or after. */
  move(ref: string, from: string | undefined, to: string | undefined, signal?: AbortSignal): Promise<Move>;
  /** Removes the files that killed gits left. */
  sweep(): Promise<void>;
}

/** `already`: the ref was at the target. `elsewhere`: it is at neither `from` nor `to`. */
export type Move = "moved" | "already" | "elsewhere";

const none = "0".repeat(40);
const run = promisify(execFile);

export function createRefs(git: Git, lock: string, path: string | undefined): Refs {
  const read = async (ref: string) =>
    line(await git.run(["rev-parse", "--verify", "--quiet", ref], { expected: [0, 1] })) || undefined;
  const sweep = async () => {
    const locks = "-type f -name *.lock ! -path ./objects/*";
    const parts = "-type f -path ./objects/* ( -name tmp_* -o -name .tmp-* ) -mmin +60";
    const find = `find . ( ${locks} -o ${parts} ) -exec rm -f {} +`.split(" ");
    await run("flock", ["--wait", "30", lock, ...find], { cwd: git.directory, env: { PATH: path } });
  };
  return {
    read,
    sweep,
    async move(ref, from, to, signal) {
      if (from === to) return (await read(ref)) === to ? "already" : "elsewhere";
      const input = to === undefined ? `delete ${ref} ${from}\n` : `update ${ref} ${to} ${from ?? none}\n`;
      for (let tried = false; ; tried = true) {
        try {
          await git.run(["update-ref", "--stdin"], { input, lock, signal });
          return "moved";
        } catch (error) {
          if (!(error instanceof GitFailed) || error.reason !== "exit") throw error;
          const now = await read(ref);
          if (now === to) return "already";
          if (now !== from) return "elsewhere";
          if (tried) throw error;
          await sweep();
        }
      }
    },
  };
}
