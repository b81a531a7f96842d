// Runs the tests as the current user and, when that is root, the local sandboxes' tests also as an ordinary user.
// Arguments narrow the run: they go to Vitest, and only the current user's run takes place.
import { spawnSync } from "node:child_process";
import { globSync, rmSync } from "node:fs";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const localProvider = "packages/sandbox/src/providers/local";
const narrowed = process.argv.slice(2);
const isRoot = process.getuid() === 0;

rmSync(`${root}/.reports`, { recursive: true, force: true });
const results = [run(vitest(isRoot ? "root" : "user", narrowed))];
if (isRoot && narrowed.length === 0 && globSync(`${localProvider}/**/*.test.ts`, { cwd: root }).length > 0) {
  console.log("\nThe local sandboxes' tests again, as an ordinary user");
  results.push(run(["scripts/as-user.mjs", ...vitest("user", [localProvider])]));
}
process.exitCode = results.every((code) => code === 0) ? 0 : 1;

function vitest(name, args) {
  const reporters = ["--reporter=default", "--reporter=json", `--outputFile.json=.reports/${name}.json`];
  return ["node_modules/vitest/vitest.mjs", "run", ...reporters, ...args];
}

function run(args) {
  return spawnSync(process.execPath, args, { cwd: root, stdio: "inherit" }).status;
}
