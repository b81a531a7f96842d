import { describe, expect, test } from "vitest";
import { runnerChange } from "./runner-settings.ts";

const side = (text: string, readable = true) => ({ text, readable });
const told = (path: string, before: string, after: string, from?: string) =>
  runnerChange({ path, ...(from !== undefined && { from }) }, side(before), side(after));

test.each([
  [".npmrc", "", "script-shell=./forged\n", "program"],
  [".npmrc", "audit=false\n", "audit=false\n node-options = --import ./forged.js\n", "program"],
  [".npmrc", "script-shell=bash\n", "audit=false\nscript-shell=bash\n", undefined],
  [".npmrc", "", "# no shell of ours\nregistry=https://registry.example.com/\n", undefined],
  [".yarnrc.yml", "", "yarnPath: ./forged.cjs\n", "program"],
  [".yarnrc", "", 'yarn-path "./forged.js"\n', "program"],
  ["pnpm-workspace.yaml", "packages:\n", "packages:\nscriptShell: ./forged\n", "program"],
  ["shop/.npmrc", "", "shell=./forged\n", "program"],
  ["vitest.config.ts", "", 'export default { test: { include: ["easy/**"] } };', "choice"],
  ["vitest.config.ts", "test: {}", "test: {\n passWithNoTests: true\n}", "choice"],
  ["vitest.config.ts", "  exclude: [],", "", "choice"],
  ["vitest.config.ts", 'include: [\n "a/**",\n "b/**"\n]', 'include: [\n "a/**",\n]', "choice"],
  ["vitest.config.ts", 'include: [\n "a/**"\n]', 'include: [ "a/**" ]', undefined],
  ["vitest.config.ts", "test: {}", '/* */ exclude: ["hard/**"],', "choice"],
  ["vitest.config.ts", "test: {}", 'test: { environment: "jsdom" }', undefined],
  ["vite.config.ts", "", "optimizeDeps: {\n include: ['three'] }", undefined],
  ["vite.config.ts", "test: {\n},", "test: {\n},\noptimizeDeps: { include: ['three'] }", undefined],
  ["vite.config.ts", "test: {\n}", "test: {\n exclude: ['hard/**'] }", "choice"],
  [".mocharc.yml", "ignore:\n  - a.js\n", "ignore:\n  - a.js\n  - hard.js\n", "choice"],
  ["pyproject.toml", "", '[tool.pytest.ini_options]\naddopts = "--ignore=tests/hard.py"\n', "choice"],
  ["pyproject.toml", "", '[tool.hatch]\ninclude = ["src"]\n\n[tool.pytest.ini_options]\npythonpath = "."\n', undefined],
  [
    "pyproject.toml",
    "[tool.pytest.ini_options]\n[a]\n",
    '[tool.pytest.ini_options]\n[a]\nexclude = ["b"]\n',
    undefined,
  ],
  ["setup.cfg", "[tool:pytest]\ntestpaths = tests\n", "[tool:pytest]\ntestpaths = easy\n", "choice"],
  ["tox.ini", "", "[pytest]\npython_files = easy_*.py\n", "choice"],
  ["pytest.py", "", "raise SystemExit(0)", "program"],
  ["pytest/__main__.py", "", "", "program"],
  ["src/pytest.py", "", "", undefined],
  ["package.json", '{ "jest": {} }', '{ "jest": { "testPathIgnorePatterns": ["hard"] } }', "choice"],
  ["package.json", '{ "jest": { "testMatch": ["a", "b"] } }', '{ "jest": { "testMatch": ["a"] } }', "choice"],
  ["package.json", '{ "jest": {} }', '{ "jest": { "testEnvironment": "jsdom" } }', undefined],
  ["package.json", "{}", '{ "files": ["dist"], "exclude": 1 }', undefined],
  ["package.json", "{}", "{", undefined],
  ["src/include.ts", "", "include: 1", undefined],
] as const)("%s, once %j, now %j, is a change of %s", (path, before, after, of) => {
  expect(told(path, before, after)?.of).toBe(of);
});

test("settings that are moved away, or brought by a move, are a change", () => {
  expect(told("notes.txt", "script-shell=bash\n", "script-shell=bash\n", ".npmrc")?.of).toBe("program");
  expect(told(".npmrc", "script-shell=./forged\n", "script-shell=./forged\n", "notes.txt")?.of).toBe("program");
});

describe("settings that can not be read", () => {
  test.each([".npmrc", "vitest.config.ts"])("are a change: %s", (path) => {
    expect(runnerChange({ path }, side(""), side("", false))).toMatchObject({ path });
    expect(runnerChange({ path }, side("", false), side(""))).toMatchObject({ path });
  });

  test("are none of our business elsewhere", () => {
    expect(runnerChange({ path: "logo.png" }, side(""), side("", false))).toBeUndefined();
  });
});

test.each([
  ["playwright.config.ts", "", "testDir: 'e2e'", "playwright"],
  ["vite.config.ts", "", "test: { include: ['a'] }", "vitest"],
  ["package.json", "{}", '{ "jest": { "roots": ["src"] } }', "jest"],
  ["pyproject.toml", "[project]\n", "[tool.pytest.ini_options]\naddopts = '-x'\n", "pytest"],
  ["vitest.config.ts", "test: {}", "include: ['a']", undefined],
] as const)("%s, once %j, now %j, is new for %s", (path, before, after, runner) => {
  expect(told(path, before, after)?.newFor).toBe(runner);
});
