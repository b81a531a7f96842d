// Runs the tests as the current user and, when that is root, the local sandboxes' tests also as an ordinary user.
// Arguments narrow the run: they go to Vitest, and only the current user's run takes place.
import { spawnSync } from "node:child_process";
import { globSync, rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const compileCache = join(root, "node_modules/.cache/compiled");
const localProvider = "packages/sandbox/src/providers/local";
/** Proxies, and what programs do inside: sandboxes run with an ordinary user's rights, whoever started them. */
const sameForAll = ["keeper/egress/**", "keeper/preview/**", "keeper/image-debian.test.ts", "project.test.ts"];
const narrowed = process.argv.slice(2);
const isRoot = process.getuid() === 0;

rmSync(`${root}/.reports`, { recursive: true, force: true });
const results = [run(vitest(isRoot ? "root" : "user", narrowed))];
if (isRoot && narrowed.length === 0 && globSync(`${localProvider}/**/*.test.ts`, { cwd: root }).length > 0) {
  console.log("\nThe local sandboxes' tests again, as an ordinary user");
  const files = [localProvider, ...sameForAll.flatMap((name) => ["--exclude", `${localProvider}/${name}`])];
  results.push(run(["scripts/as-user.mjs", ...vitest("user", files)], { SLIPWAY_TEST_KILLS: "10" }));
}
process.exitCode = results.every((code) => code === 0) ? 0 : 1;

function vitest(name, args) {
  const reporters = ["--reporter=default", "--reporter=json", `--outputFile.json=.reports/${name}.json`];
  return ["node_modules/vitest/vitest.mjs", "run", ...reporters, ...args];
}

/** Many tests start programs of ours: most of a start is reading the sources, so that is done once for all of them. */
function run(args, settings = {}) {
  const env = { ...settings, ...process.env, NODE_COMPILE_CACHE: compileCache };
  return spawnSync(process.execPath, args, { cwd: root, stdio: "inherit", env }).status;
}
