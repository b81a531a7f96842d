import { SlipwayError } from "@slipway/contract";
import type { Sandbox } from "@slipway/sandbox";

/** Separate from the project's repository, which belongs to the agent. Untrusted, like everything inside. */
const gitDirectory = "/var/tmp/slipway-base.git";
const ignored = ["node_modules/", ".git/"];

/** The original files of a sandbox, for a later comparison. */
export interface Baseline {
  /** The changes since, as a patch for `git apply`; empty if nothing changed. Not UTF-8 if the files are not. */
  diff(options: { readonly signal: AbortSignal }): Promise<Buffer>;
}

/** Records the files of the workdir, and makes it a repository if it is none, as agents expect. */
export async function takeBaseline(
  sandbox: Sandbox,
  workdir: string,
  options: { readonly signal: AbortSignal },
): Promise<Baseline> {
  const git = (script: string, signal: AbortSignal) => inside(sandbox, workdir, script, signal);
  await git(
    `git init -q "$GIT_DIR" && printf '%s\\n' ${ignored.map((line) => `'${line}'`).join(" ")} > "$GIT_DIR/info/exclude"`,
    options.signal,
  );
  const writtenTree = async (signal: AbortSignal) =>
    (await git("git add -A && git write-tree", signal)).toString().trim();
  const base = await writtenTree(options.signal);
  await git(ownRepository, options.signal);
  return {
    async diff({ signal }) {
      const now = await writtenTree(signal);
      return git(`git diff --binary --full-index --no-renames --no-ext-diff --no-textconv ${base} ${now}`, signal);
    },
  };
}

const maxDiffBytes = 32 * 1024 * 1024;

const ownRepository = `unset GIT_DIR GIT_WORK_TREE
[ -e .git ] || { git init -q -b main && printf 'node_modules/\\n' >> .git/info/exclude && git add -A &&
git -c user.name=Slipway -c user.email=slipway@localhost commit -q --allow-empty -m 'Start'; } >&2`;

async function inside(sandbox: Sandbox, workdir: string, shell: string, signal: AbortSignal): Promise<Buffer> {
  const env = {
    GIT_DIR: gitDirectory,
    GIT_WORK_TREE: workdir,
    GIT_CONFIG_NOSYSTEM: "1",
    GIT_CONFIG_GLOBAL: "/dev/null",
  };
  await using exec = await sandbox.exec({ shell, cwd: workdir, env }, { signal });
  const streams = { stdout: [] as Uint8Array[], stderr: [] as Uint8Array[] };
  let bytes = 0;
  for await (const chunk of exec.output({ signal })) {
    if (chunk.type !== "output_truncated") {
      streams[chunk.type].push(chunk.data);
      bytes += chunk.data.length;
    }
    if (chunk.type === "output_truncated" || bytes > maxDiffBytes) {
      await exec.kill();
      throw new SlipwayError("too_large", `The changes exceed ${maxDiffBytes / 1024 / 1024} MB.`);
    }
  }
  const { exitCode } = await exec.wait({ signal });
  if (exitCode === 0) return Buffer.concat(streams.stdout);
  const complaint = Buffer.concat(streams.stderr).toString().trim().slice(-1000);
  throw new SlipwayError("exec_failed", `Git failed in the sandbox: ${complaint}`);
}
