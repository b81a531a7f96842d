// Runs the tests as the current user and, when that is root, the local sandboxes' tests also as an ordinary user.
// Arguments narrow the run: they go to Vitest, and only the current user's run takes place.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { globSync, rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const compileCache = join(root, "node_modules/.cache/compiled");
const localProvider = "packages/sandbox/src/providers/local";
/** Proxies, and what programs do inside: sandboxes run with an ordinary user's rights, whoever started them. */
const sameForAll = ["keeper/egress/**", "keeper/preview/**", "keeper/image-debian.test.ts", "project.test.ts"];
/** Each has a machine's worth of processes: one at a time runs beside the small ones. */
const large = [
  ...["server/src/*.test.ts", "server/src/{attempts,gates}/*.test.ts", "runner/src/host/{faults,restart}.test.ts"],
  "sandbox/src/providers/local/{crash,hundred,keeper/image-debian}.test.ts",
].map((pattern) => `packages/${pattern}`);
const narrowed = process.argv.slice(2);
const isRoot = process.getuid() === 0;

rmSync(`${root}/.reports`, { recursive: true, force: true });
const runs = narrowed.length > 0 ? [run(vitest("narrowed", narrowed))] : [runLarge(), runSmall()];
process.exitCode = (await Promise.all(runs)).every((passed) => passed) ? 0 : 1;

function runLarge() {
  return run(vitest("large", ["--maxWorkers=1", ...globSync(large, { cwd: root })]));
}

async function runSmall() {
  const small = large.flatMap((pattern) => ["--exclude", pattern]);
  const passed = await run(vitest("small", small));
  if (!isRoot) return passed;
  console.log("\nThe local sandboxes' tests again, as an ordinary user");
  const files = [localProvider, ...sameForAll.flatMap((name) => ["--exclude", `${localProvider}/${name}`])];
  return (await run(["scripts/as-user.mjs", ...vitest("user", files)], { SLIPWAY_TEST_KILLS: "10" })) && passed;
}

function vitest(name, args) {
  const reporters = ["--reporter=default", "--reporter=json", `--outputFile.json=.reports/${name}.json`];
  return ["node_modules/vitest/vitest.mjs", "run", ...reporters, ...args];
}

/** Many tests start programs of ours: most of a start is reading the sources, so that is done once for all of them. */
async function run(args, settings = {}) {
  const env = { ...settings, ...process.env, NODE_COMPILE_CACHE: compileCache };
  const [code] = await once(spawn(process.execPath, args, { cwd: root, stdio: "inherit", env }), "exit");
  return code === 0;
}
