import { execFile } from "node:child_process";
import { copyFile, readdir, readFile, stat } from "node:fs/promises";
import { builtinModules } from "node:module";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { buildRunner } from "../build.mjs";
import { makeWorkplace } from "./testing/workplace.ts";

const run = promisify(execFile);

test("the runner is one file that imports nothing but Node's own modules", async () => {
  const directory = await buildRunner();
  expect(await readdir(directory)).toEqual(["runner.mjs"]);
  const text = await readFile(join(directory, "runner.mjs"), "utf8");
  const imported = [...text.matchAll(/^import (?:.+ from )?"([^"]+)";$/gm)].map(([, name = ""]) => name);
  expect(imported.length).toBeGreaterThan(0);
  const known = new Set(builtinModules.flatMap((name) => [name, `node:${name}`]));
  expect(imported.filter((name) => !known.has(name))).toEqual([]);
});

test("the runner contains no code of the host", async () => {
  const text = await readFile(join(await buildRunner(), "runner.mjs"), "utf8");
  const sources = [...text.matchAll(/^\/\/ (packages\/.+)$/gm)].map(([, path = ""]) => path);
  expect(sources).toContain("packages/runner/src/main.ts");
  expect(sources.filter((path) => !/^packages\/(contract|runner)\/src\//.test(path))).toEqual([]);
  expect(sources.filter((path) => path.startsWith("packages/runner/src/host/"))).toEqual([]);
});

test("the runner runs where nothing else is installed", async () => {
  const { directory } = await makeWorkplace();
  const file = join(directory, "runner.mjs");
  await copyFile(join(await buildRunner(), "runner.mjs"), file);
  await expect(run(process.execPath, [file], { cwd: directory, env: {} })).rejects.toThrow("SLIPWAY_RUN_TOKEN");
});

test("a build of the same sources is the same directory and does not change it", async () => {
  const directory = await buildRunner();
  const before = await stat(join(directory, "runner.mjs"));
  const all = await Promise.all(Array.from({ length: 5 }, buildRunner));
  expect(new Set(all)).toEqual(new Set([directory]));
  expect((await stat(join(directory, "runner.mjs"))).mtimeMs).toBe(before.mtimeMs);
});
