import { describe, expect, test } from "vitest";
import { scriptMistakes, type TestSetup, testCommands } from "./test-scripts.ts";

type Scripts = Readonly<Record<string, string>>;

const node = (scripts: Scripts, more: Readonly<Record<string, Scripts>> = {}): TestSetup => ({
  names: new Set(["package.json"]),
  manifests: new Map(
    Object.entries({ ".": scripts, ...more }).map(([directory, own]) => [
      directory === "." ? "package.json" : `${directory}/package.json`,
      JSON.stringify({ scripts: own }),
    ]),
  ),
  hasTests: true,
});
const found = (before: TestSetup, after: TestSetup) => scriptMistakes(before, after).map(({ text }) => text);

describe("a test script is kept", () => {
  test.each([
    ["vitest run", "vitest run"],
    ["vitest run", " vitest run "],
    ["vitest run", "tsc && vitest run"],
    ["vitest run", 'eslint "src/**/*.ts" && tsc -p . && vitest run'],
    ["vitest run", "vitest run && playwright test"],
    ["vitest run", "vitest run&&playwright test --grep 'a && b'"],
    ["vitest run", "npm run build && vitest run && npm run e2e"],
    ["vitest run || true", "vitest run || true"],
    ["vitest run | cat", "tsc && vitest run | cat"],
    // There was nothing to keep.
    ["echo none yet", "vitest run"],
    ["echo none yet", "true"],
    ['echo "Error: no test specified" && exit 1', "vitest run"],
  ])("that was %j and is %j", (before, after) => {
    expect(found(node({ test: before }), node({ test: after }))).toEqual([]);
  });

  test("where there was none, and where others are added", () => {
    expect(found(node({}), node({ test: "vitest run", pretest: "rm -rf out" }))).toEqual([]);
    expect(found({ ...node({}), manifests: new Map() }, node({ test: "vitest run" }))).toEqual([]);
    expect(found(node({ test: "vitest run" }), node({ test: "vitest run", lint: "eslint . | cat; true" }))).toEqual([]);
  });
});

describe("a test script is not kept", () => {
  test.each([
    ["exit 0; vitest run"],
    ["exit 0 && vitest run"],
    ["true # vitest run"],
    ["true && # && vitest run"],
    ["vitest run | cat"],
    ["vitest run || true"],
    ["vitest run || node -e 0"],
    ["vitest run || exit 0"],
    ["vitest run; exit 0"],
    ["vitest run & echo fine"],
    ["vitest run\ntrue"],
    ["true\nfalse && vitest run"],
    ["false && vitest run || true"],
    ["true || vitest run"],
    ["vitest run -t none --passWithNoTests"],
    ["vitest run --coverage"],
    ["echo vitest run"],
    ['echo "a && vitest run && b"'],
    ["echo 'a && vitest run'"],
    ["if false; then vitest run; fi"],
    ["exec true && vitest run"],
    ["command exit && vitest run"],
    ["e''xit && vitest run"],
    ["eval exit && vitest run"],
    ["return && vitest run"],
    ["cd empty && vitest run"],
    ["PATH=./forged && vitest run"],
    ["export PATH=./forged && vitest run"],
    ["vitest() (true) && vitest run"],
    ["hash -p /bin/true vitest && vitest run"],
    ["trap : EXIT && vitest run"],
    ["$(echo exit) && vitest run"],
    ["rm -rf tests && vitest run"],
    ["echo {} > vitest.config.ts && vitest run"],
    ["node -e 'fs.rmSync(`tests`)' && vitest run"],
    ["sh hide-tests && vitest run"],
    ["vitest run && echo fine; true"],
    ["vitest run tests/easy"],
    ["vitest"],
  ])("as %j", (after) => {
    const [text = "", ...more] = found(node({ test: "vitest run" }), node({ test: after }));
    expect(text).toMatch(/^The test script of package\.json .*Put it back: "vitest run"\./);
    expect(more).toEqual([]);
  });

  test("when it runs nothing, or its manifest is gone or no JSON", () => {
    const before = node({ test: "vitest run" });
    expect(found(before, node({ test: "true" }))).toEqual([expect.stringContaining("runs no tests any more")]);
    for (const manifests of [new Map(), new Map([["package.json", "{"]])]) {
      expect(found(before, { ...before, manifests })).toEqual([expect.stringContaining("is gone")]);
    }
  });
});

test("more scripts, or longer ones, than can be compared at once are refused, unless they were there", () => {
  const [long, many] = [
    "vitest run && ".repeat(70_000),
    Object.fromEntries(Array.from({ length: 501 }, (_, i) => [i, "tsc"])),
  ];
  const small = { test: "vitest run" };
  for (const scripts of [{ test: `${long} exit 0` }, { ...small, lint: long }, { ...small, ...many }]) {
    expect(found(node(small), node(scripts))).toEqual([expect.stringContaining("make it shorter")]);
    expect(found(node(scripts), node(scripts))).toEqual([]);
  }
  const starred = Object.fromEntries(Array.from({ length: 20_000 }, (_, i) => [`s${i}`, `run-s s${i}*`]));
  expect(found(node({ ...starred, test: Object.keys(starred).join("* ") }), node(small))).not.toEqual([]);
});

describe("scripts that a test script leads to", () => {
  test.each([
    ["npm run unit"],
    ["npm run-script unit && npm run e2e"],
    ["pnpm unit"],
    ["yarn run unit"],
    ["run-s lint unit"],
    ["npm-run-all 'un*'"],
    ["node --run unit"],
  ])("are kept as well: %j", (script) => {
    const before = { test: script, unit: "vitest run" };
    expect(found(node(before), node({ ...before, unit: "vitest run && tsc" }))).toEqual([]);
    const text = 'The unit script of package.json runs no tests any more. Put it back: "vitest run".';
    expect(found(node(before), node({ ...before, unit: "true" }))).toEqual([text]);
  });

  test.each([
    ["vite build", "vite build --outDir x", true],
    ["tsc -b && vite build", "tsc -b && vite build --mode staging && eslint .", true],
    ["vite build --outDir x", "npm run icons && vite build", true],
    ["vite build", "true", false],
    ["vite build", "vite build --outDir x || true", false],
    ["vite build", "vite build --outDir x; exit 0", false],
    ["vite build", "vite --version", false],
    ["tsc -b && vite build", "vite build --outDir x", false],
    ["tsc -p tests && vite build", "tsc -p easy && vite build", false],
    ["vite build && vitest run", 'vite build --x "a && vitest run && vite build "', false],
    ["vite build && vitest run", "vite build --x && vitest run easy", false],
  ])("may build the app in another way: from %j to %j is %j", (build, now, isKept) => {
    const before = { test: "npm run build && node --test", build };
    expect(found(node(before), node({ ...before, build: now })).length).toBe(isKept ? 0 : 1);
  });

  test("are those of the workspaces, too, and those before and behind them", () => {
    const root = { test: "npm run unit --workspaces" };
    const api = { unit: "npm run check", preunit: "tsc", check: "vitest run" };
    const of = (own: Scripts) => found(node(root, { api }), node(root, { api: own }));
    expect(of({ ...api, dev: "vite" })).toEqual([]);
    expect(of({ ...api, check: "vitest run easy" })).toEqual([expect.stringContaining("The check script of api/")]);
    expect(of({ ...api, preunit: "true" })).toEqual([expect.stringContaining("The preunit script of api/")]);
    expect(found(node(root, { api }), node(root))).toHaveLength(3);
    expect(testCommands(node(root, { api }))).toContain("vitest run");
  });

  test("may get one to run before them, that leaves tests alone", () => {
    const scripts = { test: "npm run unit", unit: "vitest run" };
    const of = (more: Scripts) => found(node(scripts), node({ ...scripts, ...more }));
    expect(of({ pretest: "npm run build", preunit: "tsc && eslint .", posttest: "rm -rf out" })).toEqual([]);
    expect(of({ pretest: "rm tests/hard.test.js" })).toEqual([expect.stringContaining("The pretest script")]);
    expect(of({ preunit: "echo 'export default 1' > vitest.config.js" })).toHaveLength(1);
  });
});

describe("what is run as tests stays so", () => {
  const python = (names: readonly string[] = ["requirements.txt"]): TestSetup => ({
    ...{ names: new Set(names), manifests: new Map(), hasTests: true },
  });
  const beside = (test: string) => ({ ...node({ test }), names: new Set(["requirements.txt", "package.json"]) });

  test.each<[string, TestSetup, boolean]>([
    ["as it was", python(), false],
    ["told by another file", python(["pyproject.toml"]), false],
    ["without what is installed", python([]), true],
    ["beside a script that does nothing", beside("true"), true],
    ["beside a script of another runner", beside("vitest run"), true],
    ["by a script that runs both", beside(".venv/bin/python -m pytest && vitest run"), false],
    ["beside a manifest without tests", { ...beside(""), manifests: new Map([["package.json", "{}"]]) }, false],
  ])("of a Python project %s: a finding is %j", (_, after, isFound) => {
    const mistakes = found(python(), after);
    expect(mistakes.length).toBe(isFound ? 1 : 0);
    for (const text of mistakes)
      expect(text).toMatch(/^Tests ran by `\.venv\/bin\/python -m pytest`, and would run by/);
    expect(found({ ...python(), hasTests: false }, after)).toEqual([]);
  });

  test("by the package manager that it was", () => {
    const before = node({ test: "vitest run", pretest: "tsc" });
    const after = { ...before, names: new Set(["package.json", "pnpm-lock.yaml"]) };
    expect(found(before, after)).toEqual([expect.stringContaining("would run by `pnpm run test` now")]);
  });
});
