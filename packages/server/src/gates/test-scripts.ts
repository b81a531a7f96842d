import { type Manifest, parseManifest, planTest } from "@slipway/sandbox";

/** What tests of a commit run by. */
export interface TestSetup {
  /** Names in the top directory. */
  readonly names: ReadonlySet<string>;
  /** The text of each package.json, by path. */
  readonly manifests: ReadonlyMap<string, string>;
  readonly hasTests: boolean;
}

export interface ScriptMistake {
  readonly file: string;
  readonly text: string;
}

/** What makes tests that ran before run no more, or count no more. */
export function scriptMistakes(before: TestSetup, after: TestSetup): ScriptMistake[] {
  const [was, is] = [scriptsOf(before), scriptsOf(after)];
  const tooMuch = [...is.keys()].filter((file) => isTooMuch(file, before, after));
  if (tooMuch.length > 0) return tooMuch.map((file) => ({ file, text: `${file} ${tooMuchText}` }));
  const names = reachable(was.values().toArray());
  const mistakes = was
    .entries()
    .flatMap(([file, scripts]) => againstManifest(file, names, scripts, is.get(file) ?? new Map()))
    .toArray();
  if (mistakes.length > 0) return mistakes;
  const plan = planMistake(before, after);
  return plan === undefined ? [] : [{ file: rootManifest, text: plan }];
}

/** Scripts are compared while everybody waits. */
const maxScripts = 500;
const maxScriptCharacters = 4096;
const tooMuchText = `has more than ${maxScripts} scripts, or one of more than ${maxScriptCharacters} characters: make it shorter.`;

function isTooMuch(file: string, before: TestSetup, after: TestSetup): boolean {
  const text = after.manifests.get(file) ?? "";
  if (text === before.manifests.get(file)) return false;
  const scripts = parseManifest(text)?.scripts ?? new Map<string, string>();
  return scripts.size > maxScripts || scripts.values().some(({ length }) => length > maxScriptCharacters);
}

/** All that is run for the tests, in the words of the project. */
export function testCommands(setup: TestSetup): string {
  const scripts = scriptsOf(setup);
  const names = reachable(scripts.values().toArray());
  const texts = scripts.values().flatMap((own) => names.values().map((name) => own.get(name) ?? ""));
  return [...(planOf(setup) ?? []), ...texts].join("\n");
}

type Scripts = Manifest["scripts"];

const rootManifest = "package.json";

function scriptsOf({ manifests }: TestSetup): Map<string, Scripts> {
  return new Map([...manifests].map(([path, text]) => [path, parseManifest(text)?.scripts ?? new Map()]));
}

/** Names of scripts that `test` leads to, in whatever manifest: each word of a script may be the name of another one. */
function reachable(all: readonly Scripts[]): Set<string> {
  const known = new Set(all.flatMap((scripts) => [...scripts.keys()]));
  const names = new Set(["test"]);
  // A set goes on to what is added meanwhile.
  for (const name of names) {
    const words = new Set(all.flatMap((scripts) => scripts.get(name)?.split(/[\s"'&|;()]+/) ?? []));
    const isSmall = known.size <= maxScripts && words.size <= maxScriptCharacters;
    const meant = [...words].flatMap((word) =>
      isSmall && word.endsWith("*") ? [...known].filter(begins(word.slice(0, -1))) : word,
    );
    for (const next of [`pre${name}`, `post${name}`, ...meant]) if (known.has(next)) names.add(next);
  }
  return names;
}

const begins = (start: string) => (name: string) => name.startsWith(start);

function againstManifest(file: string, names: ReadonlySet<string>, was: Scripts, is: Scripts): ScriptMistake[] {
  const kept = [...names].map((name) => scriptMistake(was.get(name), is.get(name), `The ${name} script of ${file}`));
  const ahead = [...names].map((name) => {
    const [before, after = ""] = [was.get(`pre${name}`), is.get(`pre${name}`)];
    if (!was.has(name) || before !== undefined || isHarmless(after)) return undefined;
    return `The pre${name} script of ${file} is new and runs before the tests, so it is held to this: ${harmless}.`;
  });
  return [...kept, ...ahead].flatMap((text) => (text === undefined ? [] : [{ file, text }]));
}

const harmless =
  "plain commands that are joined by && alone, and none that ends the script, changes files, or changes how others run";

function scriptMistake(before: string | undefined, after: string | undefined, name: string): string | undefined {
  if (before === undefined || runsNothing(before)) return undefined;
  const back = `Put it back: ${JSON.stringify(before)}.`;
  if (after === undefined) return `${name} is gone, and tests run by it. ${back}`;
  if (isKept(before.trim(), after.trim()) || isKept(withBareBuilds(before), withBareBuilds(after))) return undefined;
  if (runsNothing(after)) return `${name} runs no tests any more. ${back}`;
  return `${name} is not what tests ran by before. ${back} What is added stands before or behind it, joined by &&: ${harmless}.`;
}

const idle = /^(true|:|exit(\s+\d+)?|echo\b.*|printf\b.*|)$/;

/** Also of one that says that there are none, and fails. */
function runsNothing(script: string): boolean {
  return script.split(/&&|\|\||;|&|\n/).every((part) => idle.test(part.trim()));
}

/** Whether it succeeds only if what it was before does. */
function isKept(before: string, after: string): boolean {
  for (let at = after.indexOf(before); at !== -1; at = after.indexOf(before, at + 1)) {
    const [ahead, behind] = [after.slice(0, at).trimEnd(), after.slice(at + before.length).trimStart()];
    const joined = (ahead === "" || ahead.endsWith("&&")) && (behind === "" || behind.startsWith("&&"));
    if (joined && isHarmless(ahead.slice(0, -2)) && isHarmless(behind.slice(2))) return true;
  }
  return false;
}

/** No quotes that are open, no variables, no redirections, no line breaks, nothing but && in between. */
const command = String.raw`[ \t]*[a-z@./][\w@./-]*(?:[ \t]+(?:[\w@%+=:,./*^~?![\]-]|"[^"$\x60\\\n]*"|'[^'\n]*')+)*[ \t]*`;
const commands = new RegExp(`^(?:${command}(?:&&${command})*)?$`);

/** By which a shell ends or runs something else under the same name, and by which files are changed. */
const barred = new Set(
  [
    ". : alias break builtin case cd chdir command continue declare enable eval exec exit export for function getopts",
    "hash if kill let local mapfile popd printf pushd read readonly return select set shift shopt source time times trap",
    "typeset ulimit umask unalias unset until while",
    "bash cp dash dd env find git install ln mv patch perl rimraf rm rmdir sed sh shx tee touch truncate unlink xargs zsh",
  ].flatMap((line) => line.split(" ")),
);
const inline = /^(bun|deno|node|php|python3?|ruby)\s(.*\s)?(-\w*[cep]\b|--eval|--print)/;

function isHarmless(script: string): boolean {
  const isPlain = (part: string) => !barred.has(part.split(/\s/, 1)[0] ?? "") && !inline.test(part);
  return commands.test(script) && script.split("&&").every((part) => isPlain(part.trim()));
}

/** They make the app of its sources, and no tests: how is no matter of what tests run by. */
const appBuild =
  /^((npx\s+)?(astro|gatsby|next|ng|nuxi|nuxt|parcel|react-router|react-scripts|remix|vite|vue-cli-service) build)(\s+[^"']*)?$/;

function withBareBuilds(script: string): string {
  if (!isHarmless(script.trim())) return script.trim();
  const parts = script.split("&&").map((part) => part.trim());
  return parts.map((part) => appBuild.exec(part)?.[1] ?? part).join(" && ");
}

function planOf({ names, manifests }: TestSetup): readonly string[] | null {
  const text = manifests.get(rootManifest);
  return planTest({ names, manifest: text === undefined ? null : parseManifest(text) });
}

/** Other files than scripts decide, too, what the host runs as tests. */
function planMistake(before: TestSetup, after: TestSetup): string | undefined {
  const [was, is] = [planOf(before)?.join(" "), planOf(after)?.join(" ")];
  const [first, now] = [before, after].map((setup) => scriptsOf(setup).get(rootManifest)?.get("test"));
  if (!before.hasTests || was === undefined || was === is || (first !== undefined && runsNothing(first)))
    return undefined;
  if (first === undefined && now !== undefined && isKept(was, now)) return undefined;
  const other = is === undefined ? "nothing" : `\`${is}\``;
  const also = first === undefined && now !== undefined ? ` Or let the test script begin with \`${was} &&\`.` : "";
  return `Tests ran by \`${was}\`, and would run by ${other} now. Put back the files that made it so: lock files, requirements, settings of the package manager.${also}`;
}
