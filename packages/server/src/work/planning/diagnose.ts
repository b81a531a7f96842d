import { type ErrorCode, SlipwayError } from "@slipway/contract";
import type { Diagnosis, Problem } from "@slipway/engine";
import { buildProject, type OwnedSandbox, type ProjectStep, testProject } from "@slipway/sandbox";
import { endOf, lastOf } from "../step-words.ts";
import type { Installed } from "./install.ts";
import { listFiles } from "./list-files.ts";

/**
 * Finds problems by the repository's own build and tests. They run with time limits and without a network; only the
 * installation from a lock file reaches the host's registries. The host observes how each command ends.
 */
export async function diagnose(
  sandbox: OwnedSandbox,
  { commandMs, install }: { readonly commandMs: number; install(): Promise<Installed> },
  signal: AbortSignal,
): Promise<Diagnosis> {
  const files = await listFiles(sandbox, signal);
  const options = { timeoutMs: commandMs, signal };
  const problems: Problem[] = [];
  const see = (step: ProjectStep | null) => {
    if (step !== null && step.exitCode !== 0) problems.push(problemOf(step, files));
  };
  try {
    const { steps, lacksLock } = await install();
    for (const step of steps) see(step);
    // Without dependencies, a build and tests say nothing.
    if (problems.length > 0) return { problems };
    if (lacksLock) problems.push(noLockFile);
    see(await buildProject(sandbox, options));
    see(await testProject(sandbox, options));
  } catch (error) {
    if (!(error instanceof SlipwayError) || !endsDiagnosis.includes(error.code)) throw error;
    problems.push({ title: "The project's commands cannot run to their end", evidence: error.message, files: [] });
  }
  return { problems };
}

/** Failures that a repository causes: it exhausts its sandbox, or names a missing program. */
const endsDiagnosis: readonly ErrorCode[] = [
  "exec_not_started",
  "exec_ended",
  "sandbox_ended",
  "sandbox_not_running",
  "sandbox_wrong_state",
  "out_of_disk",
  "process_limit",
  "too_large",
];

const noLockFile: Problem = {
  title: "There is no lock file",
  evidence: "package.json names dependencies, but no lock file pins their versions: they were not installed.",
  files: ["package.json"],
};

const maxEvidenceCharacters = 2000;
const maxSearchedCharacters = 128 * 1024;
const maxNamedFiles = 20;
/** Shorter paths match plain words. */
const minPathCharacters = 5;

function problemOf(step: ProjectStep, files: readonly string[]): Problem {
  const log = lastOf(step, maxSearchedCharacters);
  return {
    title: `${step.argv.join(" ")} ${endOf(step.exit)}`,
    evidence: lastOf(step, maxEvidenceCharacters),
    files: files.filter((path) => path.length >= minPathCharacters && log.includes(path)).slice(0, maxNamedFiles),
  };
}
