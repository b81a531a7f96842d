import type { BuildMode } from "@slipway/contract";
import { fence } from "@slipway/contract";
import type { Problem, RepositoryReader, StartingPoint } from "../ports/repository.ts";

/** Reads what a build begins with, as far as its mode needs it. */
export async function findStart(
  mode: BuildMode,
  repository: RepositoryReader,
  options: { readonly signal?: AbortSignal | undefined } = {},
): Promise<StartingPoint> {
  switch (mode) {
    case "new":
      return { mode };
    case "feature":
      return { mode, repository: await repository.summarize(options) };
    case "fix":
      return {
        mode,
        repository: await repository.summarize(options),
        diagnosis: await repository.diagnose(options),
      };
  }
}

const maxFiles = 1500;
const maxPathCharacters = 200;
const maxNotesCharacters = 20_000;
const maxProblems = 40;
const maxEvidenceCharacters = 2000;

/** The parts of a prompt that describe it, fenced and cut to what a prompt can hold. */
export async function describeStart(start: StartingPoint): Promise<string[]> {
  if (start.mode === "new") return [];
  const { files, notes } = start.repository;
  const paths = files.slice(0, maxFiles).map((path) => path.slice(0, maxPathCharacters));
  if (files.length > paths.length) paths.push(`(and ${files.length - paths.length} more files)`);
  const parts = [
    fence("repository-files", paths.join("\n")),
    fence("repository-notes", notes.slice(0, maxNotesCharacters)),
  ];
  if (start.mode === "feature") return parts;
  const problems = start.diagnosis.problems.slice(0, maxProblems).map(problemText);
  return [...parts, fence("problems", problems.join("\n\n") || "None was found; the request says what is wrong.")];
}

function problemText({ title, evidence, files }: Problem): string {
  // The end of a log says more than its beginning.
  return [
    title.slice(0, 300),
    evidence.slice(-maxEvidenceCharacters),
    files.slice(0, 20).join(", ").slice(0, 2000),
  ].join("\n");
}
