// `npm run test:long`: the proofs that take many minutes, then the line coverage of the packages that need one. Arguments narrow
// the run: they go to Vitest, and nothing is covered.
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const covered = ["engine", "store", "gateway", "sandbox"];
/** The engine's turns are tested where it has a store. */
const turns = ["tests/tick", "tests/merge-tick", "simulated/simulation"].map(
  (name) => `packages/server/src/${name}.test.ts`,
);
const floorPercent = 90;

interface Lines {
  readonly total: number;
  readonly covered: number;
}

const filters = process.argv.slice(2);
const passed = vitest("--project=long", "--maxWorkers=1", ...filters);
process.exitCode = (filters.length > 0 || isCovered()) && passed ? 0 : 1;

function isCovered(): boolean {
  for (const file of turns) if (!existsSync(join(root, file))) throw new Error(`${file} is missing.`);
  const files = covered.map((name) => `packages/${name}/`);
  const ran = vitest("--project=unit", "--project=integration", "--coverage", "--maxWorkers=2", ...files, ...turns);
  const summary: Record<string, { lines: Lines }> = JSON.parse(
    readFileSync(join(root, ".reports/coverage/coverage-summary.json"), "utf8"),
  );
  const percents = files.map((directory) => {
    const those = Object.entries(summary).filter(([path]) => relative(root, path).startsWith(directory));
    const sum = (count: (lines: Lines) => number) => those.reduce((all, [, { lines }]) => all + count(lines), 0);
    const percent = (100 * sum(({ covered }) => covered)) / sum(({ total }) => total);
    console.log(`${directory} ${percent.toFixed(1)} % of lines covered${percent < floorPercent ? ", too few" : ""}`);
    return percent;
  });
  return ran && percents.every((percent) => percent >= floorPercent);
}

function vitest(...args: string[]): boolean {
  const argv = ["node_modules/vitest/vitest.mjs", "run", ...args];
  return spawnSync(process.execPath, argv, { cwd: root, stdio: "inherit" }).status === 0;
}
