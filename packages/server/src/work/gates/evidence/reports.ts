import { posix } from "node:path";
import { projectPath } from "@slipway/sandbox";
import { z } from "zod";
import type { TestRun } from "./evidence.ts";

/** Parses a test runner's report from a sandbox. Throws if it is malformed. */
export function parseReport(runner: string, text: string): TestRun[] {
  const parse = Object.hasOwn(parsers, runner) ? parsers[runner as keyof typeof parsers] : undefined;
  if (parse === undefined) throw new Error(`unknown test runner ${runner}`);
  return parse(text).map(({ file, name, outcome }) => ({
    file: inProject(file),
    name: name.slice(0, maxName),
    outcome,
  }));
}

const maxName = 500;
const text = z.string().max(100_000);
const outcome = z.enum(["passed", "failed", "skipped"]);

/** Our own reporters write one line per test. */
const line = z.object({ file: text.nullable(), name: text, outcome });

/** Vitest uses the same format. */
const jest = z.object({
  testResults: z.array(
    z.object({
      name: text,
      assertionResults: z.array(
        z.object({
          ancestorTitles: z.array(text).max(100),
          title: text,
          status: text,
          failing: z.boolean().optional(),
        }),
      ),
    }),
  ),
});

const mochaTest = z.object({ fullTitle: text, file: text.nullish() });
const mocha = z.object({ passes: z.array(mochaTest), failures: z.array(mochaTest), pending: z.array(mochaTest) });

const playwrightSpec = z.object({
  title: text,
  file: text,
  tests: z.array(z.object({ projectName: text, expectedStatus: text, status: text })),
});
interface PlaywrightSuite {
  readonly title: string;
  readonly specs: readonly z.output<typeof playwrightSpec>[];
  readonly suites?: readonly PlaywrightSuite[] | undefined;
}
const playwrightSuite: z.ZodType<PlaywrightSuite> = z.object({
  title: text,
  specs: z.array(playwrightSpec),
  get suites() {
    return z.array(playwrightSuite).optional();
  },
});
const playwright = z.object({ config: z.object({ rootDir: text }), suites: z.array(playwrightSuite) });

const parsers = {
  "node-test": parseLines,
  pytest: parseLines,
  vitest: parseJest,
  jest: parseJest,
  mocha(report: string): TestRun[] {
    const { passes, failures, pending } = mocha.parse(JSON.parse(report));
    const as = (outcome: TestRun["outcome"], tests: typeof passes) =>
      tests.map(({ file = null, fullTitle: name }) => ({ file, name, outcome }));
    return [...as("passed", passes), ...as("failed", failures), ...as("skipped", pending)];
  },
  playwright(report: string): TestRun[] {
    const { config, suites } = playwright.parse(JSON.parse(report));
    const within = (suite: PlaywrightSuite, names: readonly string[]): TestRun[] => [
      ...suite.specs.flatMap(({ title, file, tests }) =>
        tests.map(({ projectName, expectedStatus, status }) => ({
          file: posix.join(config.rootDir, file),
          name: [projectName, ...names, title].filter((name) => name !== "").join(" > "),
          outcome: playwrightOutcome(expectedStatus, status),
        })),
      ),
      ...(suite.suites ?? []).flatMap((one) => within(one, [...names, one.title])),
    ];
    return suites.flatMap((suite) => within(suite, []));
  },
};

function parseLines(report: string): TestRun[] {
  const lines = report.split("\n").filter((one) => one !== "");
  return lines.map((one) => line.parse(JSON.parse(one)));
}

function parseJest(report: string): TestRun[] {
  return jest.parse(JSON.parse(report)).testResults.flatMap(({ name: file, assertionResults }) =>
    assertionResults.map(({ ancestorTitles, title, status, failing = false }) => ({
      file,
      name: [...ancestorTitles, title].join(" > "),
      outcome: status === "failed" ? "failed" : status === "passed" && !failing ? "passed" : "skipped",
    })),
  );
}

/** A test that fails as expected proves nothing. */
function playwrightOutcome(expected: string, status: string): TestRun["outcome"] {
  if (status === "unexpected") return "failed";
  return expected === "passed" && (status === "expected" || status === "flaky") ? "passed" : "skipped";
}

function inProject(file: string | null): string | null {
  if (file === null) return null;
  const path = posix.relative(projectPath, posix.resolve(projectPath, file.replace(/^file:\/\//, "")));
  return path.slice(0, maxName);
}
