import type { ChangedFile } from "./changes.ts";
import { linesCompared } from "./lines.ts";

/** What a change does to how tests are run: by another program, or others of them. */
export interface RunnerChange {
  readonly path: string;
  readonly of: "program" | "choice";
}

/** Where package managers are told what runs scripts. */
const managers = /(^|\/)(\.npmrc|\.yarnrc(\.yml)?|pnpm-workspace\.yaml)$/;
const programs = /^\s*["']?(script-?shell|shell|node-?options|yarn-?path|plugins|(global-?)?pnpmfile)\b/i;

const runners =
  /(^|\/)((vite|vitest|jest|playwright|karma|cypress|mocha|ava|wdio)\.(config|workspace|setup)\.[^/]+|\.mocharc[^/]*|pytest\.ini|phpunit\.xml|package\.json)$/;
const choices = new RegExp(
  `\\b(${[
    ...["include", "exclude", "spec", "ignore", "grep", "grepInvert", "projects", "files", "match"],
    ...["testMatch", "testRegex", "testDir", "testIgnore", "testPathIgnorePatterns", "testNamePattern", "test_files"],
    ...["passWithNoTests", "allowOnly", "forbidOnly", "dangerouslyIgnoreUnhandledErrors", "bail"],
    ...["runner", "addopts", "norecursedirs", "testpaths"],
  ].join("|")})\\b["']?\\s*[:=(,]`,
);

export function runnerChange(
  { path, from }: Pick<ChangedFile, "path" | "from">,
  before: string,
  after: string,
): RunnerChange | undefined {
  if (from === undefined) return changeAt(path, before, after);
  return changeAt(from, before, "") ?? changeAt(path, "", after);
}

function changeAt(path: string, before: string, after: string): RunnerChange | undefined {
  if (managers.test(path) && differ(programs, before, after)) return { path, of: "program" };
  const isChosenAnew = runners.test(path) && differ(choices, ofRunner(path, before), ofRunner(path, after));
  return isChosenAnew ? { path, of: "choice" } : undefined;
}

/** The part of a file that is about tests. */
function ofRunner(path: string, text: string): string {
  if (path.endsWith("package.json")) return ofManifest(text);
  const isForApp = /(^|\/)vite\.config\./.test(path) && !/\btest["']?\s*:/.test(text);
  return isForApp ? "" : text;
}

function ofManifest(text: string): string {
  try {
    const { jest, mocha, ava, tap, vitest } = JSON.parse(text) as Record<string, unknown>;
    return JSON.stringify({ jest, mocha, ava, tap, vitest }, null, 1);
  } catch {
    return "";
  }
}

function differ(pattern: RegExp, before: string, after: string): boolean {
  return linesCompared(pattern, before, after).some((count) => count > 0);
}
