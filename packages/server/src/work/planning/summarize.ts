import { printable, SlipwayError } from "@slipway/contract";
import type { RepositorySummary } from "@slipway/engine";
import { projectPath, type RestrictedSandbox, readBytes, run } from "@slipway/sandbox";

const maxFiles = 2000;
const maxPathCharacters = 300;
const maxListBytes = 8 * 1024 * 1024;
const maxNoteBytes = 4096;
const maxNotesCharacters = 20_000;

const readMe = /^readme(\.(md|txt|rst))?$/i;
const manifests = new Set([
  "package.json",
  "pnpm-workspace.yaml",
  "tsconfig.json",
  "pyproject.toml",
  "requirements.txt",
  "go.mod",
  "Cargo.toml",
  "composer.json",
  "Gemfile",
  "pom.xml",
]);

/** Lists a repository's files and quotes the start of its readme and manifests. All of it is untrusted. */
export async function summarize(sandbox: RestrictedSandbox, signal: AbortSignal): Promise<RepositorySummary> {
  const paths = await listFiles(sandbox, signal);
  const top = paths.filter((path) => !path.includes("/"));
  const told = [...top.filter((path) => readMe.test(path)), ...top.filter((path) => manifests.has(path))];
  const notes: string[] = [];
  for (const path of told) notes.push(`${path}:\n${await beginningOf(sandbox, path, signal)}`);
  return {
    files: paths.slice(0, maxFiles).map((path) => printable(path).slice(0, maxPathCharacters).toWellFormed()),
    notes: notes.join("\n\n").slice(0, maxNotesCharacters).toWellFormed(),
  };
}

/** Lists files, the top directories first. */
export async function listFiles(sandbox: RestrictedSandbox, signal: AbortSignal): Promise<string[]> {
  const passedOver = ["(", "-name", ".git", "-o", "-name", "node_modules", ")", "-prune", "-o"];
  const argv = ["find", projectPath, ...passedOver, "-type", "f", "-printf", "%P\\0"];
  const { stdout, exit } = await run(sandbox, argv, { maxBytes: maxListBytes, signal });
  if (exit.reason !== "exited") throw new SlipwayError("exec_failed", `cannot list the files: ${exit.reason}`);
  const paths = stdout.split("\0").filter((path) => path !== "");
  const depthOf = (path: string) => path.split("/").length;
  return paths.sort((a, b) => depthOf(a) - depthOf(b) || (a < b ? -1 : 1));
}

async function beginningOf(sandbox: RestrictedSandbox, path: string, signal: AbortSignal): Promise<string> {
  const reader = {
    read: (wanted: string) => sandbox.files.read(wanted, { signal, length: maxNoteBytes }),
  };
  try {
    return printable(new TextDecoder().decode(await readBytes(reader, `${projectPath}/${path}`)));
  } catch (error) {
    if (error instanceof SlipwayError && !signal.aborted) return `(${error.code})`;
    throw error;
  }
}
