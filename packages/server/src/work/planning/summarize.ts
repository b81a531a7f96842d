import { printable, SlipwayError } from "@slipway/contract";
import type { RepositoryText } from "@slipway/engine";
import { projectPath, type RestrictedSandbox, readBytes } from "@slipway/sandbox";
import { listFiles } from "./list-files.ts";
import { findRoutes } from "./routes.ts";

const maxFiles = 2000;
const maxPathCharacters = 300;
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

/**
 * Lists a repository's files, quotes the start of its readme and manifests, and the lines that name routes. All of it is
 * untrusted.
 */
export async function summarize(sandbox: RestrictedSandbox, signal: AbortSignal): Promise<RepositoryText> {
  const paths = await listFiles(sandbox, signal);
  const top = paths.filter((path) => !path.includes("/"));
  const told = [...top.filter((path) => readMe.test(path)), ...top.filter((path) => manifests.has(path))];
  const notes: string[] = [];
  for (const path of told) notes.push(`${path}:\n${await beginningOf(sandbox, path, signal)}`);
  return {
    files: paths.slice(0, maxFiles).map((path) => printable(path).slice(0, maxPathCharacters).toWellFormed()),
    notes: notes.join("\n\n").slice(0, maxNotesCharacters).toWellFormed(),
    routes: await findRoutes(sandbox, signal),
  };
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
