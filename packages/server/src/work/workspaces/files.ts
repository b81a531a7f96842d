import { posix } from "node:path";
import { hasCode } from "@slipway/contract";
import { type CallOptions, projectPath, type RestrictedSandbox, run } from "@slipway/sandbox";
import type { ChangedFile } from "../repository/changes.ts";
import { expectSuccess } from "./expect-success.ts";

const timeoutMs = 600_000;

/**
 * Copies a project into a sandbox in which none of its code has run: only the project, not the programs, settings or
 * processes that its code left elsewhere. Uses no program of either sandbox, and writes nothing outside the project.
 */
export async function carryProject(from: RestrictedSandbox, to: RestrictedSandbox, call: CallOptions): Promise<void> {
  await to.files.mkdir(projectPath, call);
  await to.files.upload(projectPath, from.files.download(projectPath, call), call);
}

/** Extracts an archive into the project: all of its files, or only the named ones. */
export async function putFiles(
  sandbox: RestrictedSandbox,
  archive: AsyncIterable<Uint8Array>,
  { only, ...call }: CallOptions & { readonly only?: readonly string[] } = {},
): Promise<void> {
  const list = "/tmp/slipway-files";
  if (only?.length === 0) return;
  if (only !== undefined) await sandbox.files.write(list, only.map((path) => `${path}\0`).join(""), call);
  else await sandbox.files.mkdir(projectPath, call);
  const names = only === undefined ? [] : ["--null", "--verbatim-files-from", `--files-from=${list}`];
  // File watchers compare modification times.
  const argv = ["tar", "--extract", "--touch", "--file=-", `--directory=${projectPath}`, ...names];
  await using exec = await sandbox.exec({ argv, stdin: "open", timeoutMs }, call);
  const said: Uint8Array[] = [];
  const listen = async () => {
    for await (const chunk of exec.output(call)) if (chunk.type !== "output_truncated") said.push(chunk.data);
  };
  const feed = async () => {
    try {
      for await (const chunk of archive) await exec.write(chunk, call);
      await exec.end(call);
    } catch (error) {
      // Its exit code and output say why it ended.
      if (!hasCode(error, "exec_ended")) throw error;
    }
  };
  await Promise.all([listen(), feed()]);
  const exit = await exec.wait(call);
  expectSuccess({ argv, exit, stdout: "", stderr: Buffer.concat(said).toString("utf8") });
}

/** Removes deleted and renamed files, and the directories that become empty. */
export async function removeFiles(
  sandbox: RestrictedSandbox,
  changes: readonly ChangedFile[],
  call: CallOptions = {},
): Promise<void> {
  const gone = changes.flatMap(({ change, path, from }) => (change === "deleted" ? [path] : (from ?? [])));
  const directories = [...new Set(gone.map((path) => posix.dirname(path)))].filter((path) => path !== ".");
  await removeNamed(sandbox, ["rm", "--force"], gone, call);
  await removeNamed(sandbox, ["rmdir", "--parents", "--ignore-fail-on-non-empty"], directories, call);
}

async function removeNamed(
  sandbox: RestrictedSandbox,
  argv: readonly string[],
  paths: readonly string[],
  call: CallOptions,
): Promise<void> {
  if (paths.length === 0) return;
  const input = paths.map((path) => `${path}\0`).join("");
  const removing = ["xargs", "--null", ...argv, "--"];
  expectSuccess({ argv: removing, ...(await run(sandbox, removing, { cwd: projectPath, input, ...call })) });
}
