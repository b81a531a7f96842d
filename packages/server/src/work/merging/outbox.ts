import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { hasCode, SlipwayError } from "@slipway/contract";
import { createGit, type GitSettings } from "../repository/git.ts";
import { quoted } from "../repository/quarantine/quarantine.ts";
import { replayed } from "./replay.ts";

export interface OutboxOptions extends GitSettings {
  /** The address of the remote. */
  readonly url: string;
}

export interface Push {
  readonly main: string;
  /** The remote's commit that main started from. Null: main started empty. */
  readonly onto: string | null;
  readonly branch: string;
}

/** A repository beside the build's own that talks to a remote, so that nothing from the remote enters the build's. */
export interface Outbox {
  /** Returns the pushed commit. Never overwrites commits of others. */
  push(push: Push, signal: AbortSignal): Promise<string>;
}

const execute = promisify(execFile);
const transferMs = 10 * 60_000;
/** Variables by which a user's git finds keys and proxies; the others could point it to another repository. */
const keptVariables = /^GIT_(SSH|ASKPASS|CONFIG|SSL|HTTP|PROXY)/;

/** How git and JGit say that a remote lacks a commit. The third is from a remote without any commit. */
const sayingUnknown =
  /not our ref|unadvertised object|no matching remote head|find remote ref|want [0-9a-f]+ not valid/;

/** `directory`: of the build. */
export async function openOutbox({ directory, environment, url }: OutboxOptions): Promise<Outbox> {
  const own = join(directory, "outbox.git");
  const objects = { GIT_ALTERNATE_OBJECT_DIRECTORIES: quoted(join(directory, "repository.git/objects")) };
  const git = createGit({ directory: own, environment }, objects);
  await git.run(["init", "--quiet", "--bare", "--template=", "--object-format=sha1", own]);

  const transfer = async (args: readonly string[], signal: AbortSignal) => {
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

  return {
    async push({ main, onto, branch }, signal) {
      const known = onto === null ? null : await found(onto, signal);
      const tip = known === null ? main : await replayed(git, main, known);
      await transfer(["push", "--quiet", "--no-verify", "--", url, `${tip}:refs/heads/${branch}`], signal);
      return tip;
    },
  };

  /** Null: the remote lacks the commit. */
  async function found(commit: string, signal: AbortSignal): Promise<string | null> {
    const { exitCode } = await git.run(["cat-file", "-e", `${commit}^{commit}`], { expected: [0, 1, 128], signal });
    if (exitCode === 0) return commit;
    try {
      await transfer(["fetch", "--quiet", "--no-tags", "--depth=1", "--", url, commit], signal);
      return commit;
    } catch (error) {
      // After another failure the remote may still have it: a branch pushed without its history cannot be repaired.
      if (hasCode(error, "git_failed") && sayingUnknown.test(error.message)) return null;
      throw error;
    }
  }
}
