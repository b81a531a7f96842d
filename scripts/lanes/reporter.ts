import { mkdirSync, writeFileSync } from "node:fs";
import { relative } from "node:path";
import type { Reporter, TestCase, TestModule, TestSuite } from "vitest/node";
import type { Broken, Report, TestResult } from "./report.ts";

type ReportedError = { readonly message?: string; readonly stack?: string | undefined };

/** Writes a lane's report. Vitest's own JSON report does not tell a failed hook from a failed test. */
export default class LaneReporter implements Reporter {
  /** Only at the end of the run: one that was cut off leaves no report. */
  onTestRunEnd(modules: readonly TestModule[], unhandledErrors: readonly ReportedError[]): void {
    const outside = unhandledErrors.map((error) => ({ where: "outside of the tests", errors: [text(error)] }));
    const report: Report = {
      tests: modules.flatMap((module) => [...module.children.allTests()].map(describeTest)),
      broken: [...modules.flatMap(brokenParts), ...outside],
      files: modules.map((module) => ({ file: pathOf(module), ms: Math.round(module.diagnostic().duration) })),
    };
    mkdirSync(".reports", { recursive: true });
    writeFileSync(`.reports/${process.env["SLIPWAY_LANE"] ?? "tests"}.json`, JSON.stringify(report, null, 1));
  }
}

function describeTest(test: TestCase): TestResult {
  const { state, errors = [] } = test.result();
  return { file: pathOf(test.module), name: test.fullName, state, errors: errors.map(text) };
}

/** Errors of a file or a suite: it did not load, a hook failed, or its worker died. */
function brokenParts(module: TestModule): Broken[] {
  const parts: (TestModule | TestSuite)[] = [module, ...module.children.allSuites()];
  return parts
    .filter((part) => part.errors().length > 0)
    .map((part) => ({
      where: part.type === "module" ? pathOf(part) : `${pathOf(module)} > ${part.fullName}`,
      errors: part.errors().map(text),
    }));
}

function pathOf(module: TestModule): string {
  return relative(process.cwd(), module.moduleId);
}

function text({ stack, message }: ReportedError): string {
  return stack ?? message ?? "an error without words";
}
