import { posix } from "node:path";
import { hasCode, printable, SlipwayError } from "@slipway/contract";
import { type CallOptions, projectPath, type RestrictedSandbox, run } from "@slipway/sandbox";
import type { ChangedFile } from "../repository/changes.ts";

const toldBytes = 2000;
const timeoutMs = 600_000;

/** The end of what a command has said, harmless for whoever reads it. */
export function lastWords({ stdout, stderr }: { readonly stdout: string; readonly stderr: string }): string {
  return printable(stderr.trim() === "" ? stdout : stderr)
    .trim()
    .slice(-toldBytes);
}

/**
 * Takes a project to a sandbox in which none of its code has run, and nothing else: neither programs nor settings that the code
 * has left elsewhere, nor its processes. No program of either sandbox is used, and nothing is put outside the project.
 */
export async function carryProject(from: RestrictedSandbox, to: RestrictedSandbox, call: CallOptions): Promise<void> {
  await to.files.mkdir(projectPath, call);
  await to.files.upload(projectPath, from.files.download(projectPath, call), call);
}

/** Puts the files of an archive into the project: all of them, or those that are named. */
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
  // What watches the files goes by the time of their change.
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
      // It says itself why it has ended.
      if (!hasCode(error, "exec_ended")) throw error;
    }
  };
  await Promise.all([listen(), feed()]);
  const { exitCode } = await exec.wait(call);
  if (exitCode !== 0) throw notPlaced(Buffer.concat(said).toString("utf8"));
}

/** Removes what a change has taken away, and the directories that are empty then. */
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
  const result = await run(sandbox, ["xargs", "--null", ...argv, "--"], { cwd: projectPath, input, ...call });
  if (result.exitCode !== 0) throw notPlaced(result.stderr);
}

function notPlaced(complaint: string): SlipwayError {
  const words = lastWords({ stdout: "", stderr: complaint });
  const code = /no space left on device/i.test(words) ? "out_of_disk" : "install_failed";
  return new SlipwayError(code, `the files can not be put in place: ${words}`);
}
