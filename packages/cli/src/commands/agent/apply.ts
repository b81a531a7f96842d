import { spawn } from "node:child_process";
import { resolve } from "node:path";
import { text } from "node:stream/consumers";
import { SlipwayError } from "@slipway/contract";
import type { Environment } from "../../terminal/environment.ts";

/**
 * Applies a patch from a sandbox to a directory, completely or not at all. Git refuses paths that lead outside the
 * directory, into `.git` or through a symbolic link.
 */
export async function applyPatch(patch: Uint8Array, directory: string, environment: Environment): Promise<void> {
  const root = resolve(directory);
  // Inside a repository git would run the configured filters, and resolve paths from its root.
  const env = { ...gitEnvironment(environment), GIT_DIR: "/dev/null" };
  const child = spawn("git", ["apply", "--binary", "--whitespace=nowarn", "-"], {
    cwd: root,
    env,
    stdio: ["pipe", "ignore", "pipe"],
  });
  const code = new Promise<number | null>((resolveCode, reject) =>
    child.once("error", reject).once("close", resolveCode),
  );
  // Git may refuse the patch before it has read all of it.
  child.stdin.on("error", () => {});
  child.stdin.end(patch);
  const [complaint, exitCode] = await Promise.all([text(child.stderr), code]);
  if (exitCode === 0) return;
  throw new SlipwayError("patch_refused", `The changes do not apply to ${root}: ${complaint.trim().slice(0, 2000)}`);
}

/** Without git variables and configuration that could redirect it. */
function gitEnvironment({ PATH }: Environment): NodeJS.ProcessEnv {
  return { ...(PATH !== undefined && { PATH }), LC_ALL: "C", GIT_CONFIG_NOSYSTEM: "1", GIT_CONFIG_GLOBAL: "/dev/null" };
}
