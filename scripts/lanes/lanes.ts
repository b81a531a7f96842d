import { spawn } from "node:child_process";
import { once } from "node:events";
import { createWriteStream, existsSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Readable, Writable } from "node:stream";
import { fileURLToPath } from "node:url";
import type { Broken, Report, TestResult } from "./report.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
/** With more failed tests than this the run is red, whatever a second try would show. */
const mostFlaky = 3;

export interface Lane {
  readonly name: string;
  /** As an ordinary user, from a copy of the checkout. */
  readonly asUser?: boolean;
  readonly print?: (line: string) => void;
}

export interface LaneResult extends Report {
  readonly name: string;
  readonly exit: number | null;
  readonly ms: number;
}

type LaneTest = TestResult & { readonly lane: string };

export interface Verdict {
  readonly passed: number;
  readonly failed: number;
  readonly failures: readonly LaneTest[];
  readonly broken: readonly Broken[];
  /** Failed, and passed when they ran again alone. They count as passed. */
  readonly flaky: readonly LaneTest[];
}

/**
 * Runs Vitest once. Its output goes to `.reports/<name>.log`, and to the terminal with the lane's name before each line,
 * since lanes run side by side.
 */
export async function runVitest(lane: Lane, args: readonly string[], cwd = root): Promise<LaneResult> {
  const { name, asUser = false, print = console.log } = lane;
  const reports = join(cwd, ".reports");
  mkdirSync(reports, { recursive: true });
  const home = asUser ? "." : root;
  const reporters = ["default", join(home, "scripts/lanes/reporter.ts")].map((path) => `--reporter=${path}`);
  const vitest = [join(home, "node_modules/vitest/vitest.mjs"), "run", ...reporters, ...args];
  const argv = asUser ? ["scripts/as-user.mjs", ...vitest] : vitest;
  // Many tests start programs of ours: most of a start is reading the sources, so that is done once for all of them.
  const compileCache = join(root, "node_modules/.cache/compiled");
  const env = { ...process.env, NODE_COMPILE_CACHE: compileCache, SLIPWAY_LANE: name };
  const startedAt = Date.now();
  const child = spawn(process.execPath, argv, { cwd, stdio: ["ignore", "pipe", "pipe"], env });
  const log = createWriteStream(join(reports, `${name}.log`));
  for (const stream of [child.stdout, child.stderr]) copyLines(stream, log, (line) => print(`${name} | ${line}`));
  const [exit] = (await once(child, "close")) as [number | null];
  await new Promise((resolve) => log.end(resolve));
  return { name, exit, ms: Date.now() - startedAt, ...readReport(join(reports, `${name}.json`), exit) };
}

/** The same for one test alone. */
export function runVitestAgain(lane: Lane, args: readonly string[], { file, name }: TestResult, cwd = root) {
  const exactly = `^${name.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")}$`;
  return runVitest(lane, [...args, file, "--maxWorkers=1", "--testNamePattern", exactly], cwd);
}

/**
 * Tells failures from flakes: each test that failed runs once more, by `again`. A run in which anything else broke, or in
 * which too many failed, is red whatever that would show.
 */
export async function judge(
  results: readonly LaneResult[],
  again: (test: LaneTest, number: number) => Promise<LaneResult>,
): Promise<Verdict> {
  const all = results.flatMap(({ name, tests }) => tests.map((test): LaneTest => ({ ...test, lane: name })));
  const broken = results.flatMap(({ broken }) => broken);
  const failed = all.filter(({ state }) => state === "failed");
  const notRun = all.filter(({ state }) => state !== "passed" && state !== "failed");
  const flaky: LaneTest[] = [];
  if (broken.length + notRun.length === 0 && failed.length <= mostFlaky) {
    for (const [index, test] of failed.entries()) {
      if (passedAlone(await again(test, index + 1), test)) flaky.push(test);
    }
  }
  const failures = [...failed.filter((test) => !flaky.includes(test)), ...notRun];
  return { passed: all.length - failures.length, failed: failures.length + broken.length, failures, broken, flaky };
}

/** A second run that finds no such test proves nothing. */
function passedAlone({ exit, tests, broken }: LaneResult, { file, name }: TestResult): boolean {
  const same = tests.filter((test) => test.file === file && test.name === name);
  return exit === 0 && broken.length === 0 && same.length > 0 && same.every(({ state }) => state === "passed");
}

function copyLines(stream: Readable, log: Writable, print: (line: string) => void): void {
  let rest = "";
  stream.setEncoding("utf8");
  stream.on("data", (text: string) => {
    log.write(text);
    const lines = (rest + text).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) print(line);
  });
  stream.on("end", () => {
    if (rest !== "") print(rest);
  });
}

/** A run that left no report, or ended badly without saying why, is broken. */
function readReport(path: string, exit: number | null): Report {
  if (!existsSync(path))
    return { tests: [], files: [], broken: [{ where: path, errors: ["the lane left no report"] }] };
  const report = JSON.parse(readFileSync(path, "utf8")) as Report;
  const isExplained = report.broken.length > 0 || report.tests.some(({ state }) => state !== "passed");
  if (exit === 0 || isExplained) return report;
  return { ...report, broken: [{ where: path, errors: [`the lane ended with exit code ${exit}`] }] };
}
