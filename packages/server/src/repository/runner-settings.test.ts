import { expect, test } from "vitest";
import { runnerChange } from "./runner-settings.ts";

const told = (path: string, before: string, after: string, from?: string) =>
  runnerChange({ path, ...(from !== undefined && { from }) }, before, after)?.of;

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
  ["vitest.config.ts", "test: {}", 'test: { environment: "jsdom" }', undefined],
  ["vite.config.ts", "", "optimizeDeps: {\n include: ['three'] }", undefined],
  ["vite.config.ts", "", "test: {\n exclude: ['hard/**'] }", "choice"],
  [".mocharc.yml", "", "ignore: hard.js\n", "choice"],
  ["package.json", "{}", '{ "jest": { "testPathIgnorePatterns": ["hard"] } }', "choice"],
  ["package.json", "{}", '{ "files": ["dist"], "exclude": 1 }', undefined],
  ["package.json", "{}", "{", undefined],
  ["src/include.ts", "", "include: 1", undefined],
] as const)("%s, once %j, now %j, is a change of %s", (path, before, after, of) => {
  expect(told(path, before, after)).toBe(of);
});

test("settings that are moved away, or brought by a move, are a change", () => {
  expect(told("notes.txt", "script-shell=bash\n", "script-shell=bash\n", ".npmrc")).toBe("program");
  expect(told(".npmrc", "script-shell=./forged\n", "script-shell=./forged\n", "notes.txt")).toBe("program");
});
