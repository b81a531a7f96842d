import type { ChangedFile } from "./changes.ts";

/** What a change does to how tests are run: by another program, or others of them. */
export interface RunnerChange {
  readonly path: string;
  readonly of: "program" | "choice";
  /** The runner that had no settings before. */
  readonly newFor?: string;
}

/** One side of a change. What can not be read could say anything. */
export interface Side {
  readonly text: string;
  readonly readable: boolean;
}

/** Found before the installed one by who runs in the project's directory. */
const shadows = /^_?pytest(\.py$|\/)/;

/** Where package managers are told what runs scripts. */
const managers = /(^|\/)(\.npmrc|\.yarnrc(\.yml)?|pnpm-workspace\.yaml)$/;
const programs = /^\s*["']?(script-?shell|shell|node-?options|yarn-?path|plugins|(global-?)?pnpmfile)\b/i;

const configs =
  /(^|\/)(?:(vite|vitest|jest|playwright|karma|cypress|mocha|ava|wdio)\.(?:config|workspace|setup)\.[^/]+|\.(mocha)rc[^/]*|(pytest)\.ini|(phpunit)\.xml)$/;
/** Files of many programs, with a part for one that runs tests. */
const shared = /(^|\/)(pyproject\.toml|setup\.cfg|tox\.ini)$/;
const manifest = /(^|\/)package\.json$/;
const inManifest = ["jest", "mocha", "ava", "tap", "vitest"];

/** Settings that say which tests there are, or when they have failed. */
const choices = [
  ...["include", "exclude", "spec", "ignore", "grep", "grepInvert", "projects", "files", "match", "dir", "root"],
  ...["roots", "rootDir", "testMatch", "testRegex", "testDir", "testIgnore", "testPathIgnorePatterns"],
  ...["testNamePattern", "passWithNoTests", "allowOnly", "forbidOnly", "dangerouslyIgnoreUnhandledErrors", "bail"],
  ...["runner", "addopts", "norecursedirs", "testpaths", "python_files", "python_classes", "python_functions"],
];
const choice = new RegExp(`\\b(${choices.join("|")})\\b["']?\\s*[:=(,]`);

export function runnerChange(
  { path, from }: Pick<ChangedFile, "path" | "from">,
  before: Side,
  after: Side,
): RunnerChange | undefined {
  if (from === undefined) return changeAt(path, before, after);
  return changeAt(from, before, nothing) ?? changeAt(path, nothing, after);
}

const nothing: Side = { text: "", readable: true };

function changeAt(path: string, before: Side, after: Side): RunnerChange | undefined {
  const readable = before.readable && after.readable;
  if (shadows.test(path)) return { path, of: "program" };
  if (managers.test(path)) {
    return readable && same(programLines, before, after) ? undefined : { path, of: "program" };
  }
  if (manifest.test(path)) return inManifest.map((runner) => ofManifest(path, runner, before, after)).find(Boolean);
  const runner = shared.test(path) ? "pytest" : configs.exec(path)?.slice(2).find(Boolean);
  if (runner === undefined) return undefined;
  const whole = (text: string) => text;
  const own = shared.test(path) ? pytestSection : runner === "vite" ? testBlock : whole;
  if (readable && same((text) => choiceLines(own(text)), before, after)) return undefined;
  const isNew = readable && own(before.text) === "";
  return { path, of: "choice", ...(isNew && { newFor: runner === "vite" ? "vitest" : runner }) };
}

/** A manifest that is no JSON runs nothing. */
function ofManifest(path: string, runner: string, before: Side, after: Side): RunnerChange | undefined {
  const [was, is] = [settingsIn(before.text, runner), settingsIn(after.text, runner)];
  if (JSON.stringify(chosenIn(was)) === JSON.stringify(chosenIn(is))) return undefined;
  return { path, of: "choice", ...(was === undefined && { newFor: runner }) };
}

function settingsIn(text: string, runner: string): unknown {
  try {
    return (JSON.parse(text) as Record<string, unknown> | null)?.[runner];
  } catch {
    return undefined;
  }
}

function chosenIn(value: unknown): [name: string, value: unknown][] {
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([name, one]) =>
    choices.includes(name) ? [[name, one] as [string, unknown]] : chosenIn(one),
  );
}

function same(linesOf: (text: string) => string[], before: Side, after: Side): boolean {
  return linesOf(before.text).toSorted().join("\n") === linesOf(after.text).toSorted().join("\n");
}

function programLines(text: string): string[] {
  return text.split("\n").filter((line) => programs.test(line));
}

/** Each with the whole of its value, over however many lines that goes. */
function choiceLines(text: string): string[] {
  const lists = text.replace(/\[[^[\]]*\]/g, (list) => list.replace(/\s+/g, " ")).replace(/\n\s*-/g, " -");
  return lists.split("\n").flatMap((line) => (choice.test(line) ? [line.trim()] : []));
}

function pytestSection(text: string): string {
  const [, ...sections] = text.split(/^\s*\[(?:tool\.pytest(?:\.ini_options)?|tool:pytest|pytest)\]/m);
  return sections.map((section) => section.split(/^\s*\[/m, 1)[0]).join("");
}

/** What a file that is first of all the app's says about tests. */
function testBlock(text: string): string {
  const start = text.search(/\btest["']?\s*:/);
  if (start === -1) return "";
  let depth = 0;
  for (let at = text.indexOf("{", start); at !== -1 && at < text.length; at++) {
    if (text[at] === "{") depth++;
    if (text[at] === "}" && --depth === 0) return text.slice(start, at);
  }
  return text.slice(start);
}
