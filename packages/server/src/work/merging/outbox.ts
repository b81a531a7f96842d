import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { hasCode, SlipwayError } from "@slipway/contract";
import { createGit, type GitSettings } from "../repository/git.ts";
import { quoted } from "../repository/quarantine/quarantine.ts";
import { replayed } from "./replay.ts";

interface Push extends GitSettings {
  /** The address of the remote. */
  readonly url: string;
  readonly main: string;
  /** The remote's commit that main started from. Null: main started empty. */
  readonly onto: string | null;
  readonly branch: string;
}

const execute = promisify(execFile);
const transferMs = 10 * 60_000;
/** Variables by which a user's git finds keys and proxies; the others could point it to another repository. */
const keptVariables = /^GIT_(SSH|ASKPASS|CONFIG|SSL|HTTP|PROXY)/;

/** How git and JGit say that a remote lacks a commit. The third is from a remote without any commit. */
const sayingUnknown =
  /not our ref|unadvertised object|no matching remote head|find remote ref|want [0-9a-f]+ not valid/;

/**
 * Pushes main from a repository beside the build's own, so that nothing from the remote enters the build's. Returns the
 * pushed commit. Never overwrites commits of others. `directory`: of the build.
 */
export async function pushFromOutbox(push: Push, signal: AbortSignal): Promise<string> {
  const { directory, environment, url, main, onto, branch } = push;
  const own = join(directory, "outbox.git");
  const objects = { GIT_ALTERNATE_OBJECT_DIRECTORIES: quoted(join(directory, "repository.git/objects")) };
  const git = createGit({ directory: own, environment }, objects);
  await git.run(["init", "--quiet", "--bare", "--template=", "--object-format=sha1", own]);

  const transfer = async (args: readonly string[]) => {
    const given = Object.entries(environment).filter(([name]) => !name.startsWith("GIT_") || keptVariables.test(name));
    const env = {
      GIT_SSH_COMMAND: "ssh -o BatchMode=yes",
      ...Object.fromEntries(given),
      ...objects,
      LC_ALL: "C",
      GIT_DIR: own,
      GIT_TERMINAL_PROMPT: "0",
      GIT_ALLOW_PROTOCOL: "file:https:ssh",
    };
    const quiet = ["-c", "core.hooksPath=/dev/null", "-c", "gc.auto=0", "-c", "maintenance.auto=false"];
    await execute("git", [...quiet, ...args], { env, cwd: "/", timeout: transferMs, signal }).catch((error) => {
      signal.throwIfAborted();
      const words = String(error.stderr ?? "").trim() || error.message;
      throw new SlipwayError("git_failed", `git ${args[0]} to the remote failed: ${words}`);
    });
  };

  const known = onto === null ? null : await found(onto);
  const tip = known === null ? main : await replayed(git, main, known);
  await transfer(["push", "--quiet", "--no-verify", "--", url, `${tip}:refs/heads/${branch}`]);
  return tip;

  /** Null: the remote lacks the commit. */
  async function found(commit: string): Promise<string | null> {
    const { exitCode } = await git.run(["cat-file", "-e", `${commit}^{commit}`], { expected: [0, 1, 128], signal });
    if (exitCode === 0) return commit;
    try {
      await transfer(["fetch", "--quiet", "--no-tags", "--depth=1", "--", url, commit]);
      return commit;
    } catch (error) {
      // After another failure the remote may still have it: a branch pushed without its history cannot be repaired.
      if (hasCode(error, "git_failed") && sayingUnknown.test(error.message)) return null;
      throw error;
    }
  }
}
