import { spawn } from "node:child_process";
import { resolve } from "node:path";
import { text } from "node:stream/consumers";
import { SlipwayError } from "@slipway/contract";
import type { Environment } from "../../terminal/environment.ts";

/**
 * Applies a patch that came out of a sandbox to a directory: all of it or nothing. Git refuses paths that lead out of the
 * directory, into `.git` or through a symbolic link.
 */
export async function applyPatch(patch: Uint8Array, directory: string, environment: Environment): Promise<void> {
  const root = resolve(directory);
  // In a repository git would run the filters that its settings name, and take paths as relative to its root.
  const env = { ...gitEnvironment(environment), GIT_DIR: "/dev/null" };
  const child = spawn("git", ["apply", "--binary", "--whitespace=nowarn", "-"], {
    cwd: root,
    env,
    stdio: ["pipe", "ignore", "pipe"],
  });
  const code = new Promise<number | null>((resolveCode, reject) =>
    child.once("error", reject).once("close", resolveCode),
  );
  // Git may refuse before it has read all.
  child.stdin.on("error", () => {});
  child.stdin.end(patch);
  const [complaint, exitCode] = await Promise.all([text(child.stderr), code]);
  if (exitCode === 0) return;
  throw new SlipwayError("patch_refused", `the changes do not apply to ${root}: ${complaint.trim().slice(0, 2000)}`);
}

/** Nothing of git's own that could point it elsewhere. */
function gitEnvironment({ PATH }: Environment): NodeJS.ProcessEnv {
  return { ...(PATH !== undefined && { PATH }), LC_ALL: "C", GIT_CONFIG_NOSYSTEM: "1", GIT_CONFIG_GLOBAL: "/dev/null" };
}
