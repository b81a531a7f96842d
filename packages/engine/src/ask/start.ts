import type { BuildMode } from "@slipway/contract";
import { fence } from "@slipway/contract";
import type { Problem, RepositoryReader, RepositorySummary, SeenPage, StartingPoint } from "../ports/repository.ts";

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
      return { mode, repository: { ...(await repository.summarize(options)), ...(await repository.look(options)) } };
    case "fix": {
      const text = await repository.summarize(options);
      // Before the app runs, which may leave things where the tests find them.
      const diagnosis = await repository.diagnose(options);
      return { mode, repository: { ...text, ...(await repository.look(options)) }, diagnosis };
    }
  }
}

const maxFiles = 1500;
const maxPathCharacters = 200;
const maxNotesCharacters = 20_000;
const maxRoutes = 200;
const maxRoutesCharacters = 15_000;
const maxPages = 12;
const maxPageCharacters = 3000;
const maxUnseenCharacters = 1000;
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
    ...namesIn(start.repository),
  ];
  if (start.mode === "feature") return parts;
  const problems = start.diagnosis.problems.slice(0, maxProblems).map(problemText);
  return [...parts, fence("problems", problems.join("\n\n") || "None was found; the request says what is wrong.")];
}

/** A part with nothing in it is left out: repositories of earlier builds have none of them. */
function namesIn({ routes, pages, unseen }: RepositorySummary): string[] {
  const seen = pages.slice(0, maxPages).map(pageText);
  if (unseen !== null) seen.push(unseen.slice(0, maxUnseenCharacters));
  const named = routes.slice(0, maxRoutes).join("\n").slice(0, maxRoutesCharacters);
  return [
    ...(seen.length > 0 ? [fence("repository-pages", seen.join("\n\n"))] : []),
    ...(named !== "" ? [fence("repository-routes", named)] : []),
  ];
}

function pageText({ path, leadsTo, shows }: SeenPage): string {
  const address = (leadsTo === null ? path : `${path} leads to ${leadsTo}`).slice(0, 2 * maxPathCharacters);
  return `${address}:\n${shows.slice(0, maxPageCharacters) || "(nothing)"}`;
}

function problemText({ title, evidence, files }: Problem): string {
  // The end of a log says more than its beginning.
  return [
    title.slice(0, 300),
    evidence.slice(-maxEvidenceCharacters),
    files.slice(0, 20).join(", ").slice(0, 2000),
  ].join("\n");
}
