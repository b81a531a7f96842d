import { describe, expect, test } from "vitest";
import { parseReport } from "./reports.ts";

const told = (runner: string, report: object | string) =>
  parseReport(runner, typeof report === "string" ? report : JSON.stringify(report)).map(
    ({ file, name, outcome }) => `${file}: ${name}: ${outcome}`,
  );
const path = "/workspace/project/tests/a.test.js";

test("lines of node:test and of pytest", () => {
  const lines = [
    { file: path, name: "suite > one", outcome: "passed" },
    { file: null, name: "two", outcome: "skipped" },
  ].map((line) => `${JSON.stringify(line)}\n`);
  expect(told("node-test", lines.join(""))).toEqual(["tests/a.test.js: suite > one: passed", "null: two: skipped"]);
  expect(told("node-test", "")).toEqual([]);
  const ofPytest = '{"file": "tests/test_a.py", "name": "TestX::test_four[1]", "outcome": "failed"}\n';
  expect(told("pytest", ofPytest)).toEqual(["tests/test_a.py: TestX::test_four[1]: failed"]);
});

test("a report of Vitest or Jest", () => {
  const of = (ancestorTitles: string[], title: string, status: string, more = {}) => ({
    ancestorTitles,
    fullName: [...ancestorTitles, title].join(" "),
    status,
    title,
    duration: 2,
    failureMessages: [],
    ...more,
  });
  const assertionResults = [
    of(["suite"], "one", "passed"),
    ...["failed", "pending", "skipped", "todo", "disabled"].map((status) => of([], status, status)),
    of([], "is to fail", "passed", { failing: true }),
  ];
  const report = { success: true, numTotalTests: 7, testResults: [{ assertionResults, name: path, status: "passed" }] };
  const outcomes = [
    ...["suite > one: passed", "failed: failed", "pending: skipped", "skipped: skipped", "todo: skipped"],
    ...["disabled: skipped", "is to fail: skipped"],
  ].map((one) => `tests/a.test.js: ${one}`);
  expect(told("vitest", report)).toEqual(outcomes);
  expect(told("jest", report)).toEqual(outcomes);
});

test("a report of Mocha", () => {
  const of = (fullTitle: string) => [{ title: fullTitle, fullTitle, file: path, currentRetry: 0, err: {} }];
  const report = { stats: {}, tests: of("a"), passes: of("suite one"), failures: of("b"), pending: of("c") };
  expect(told("mocha", report)).toEqual([
    ...["tests/a.test.js: suite one: passed", "tests/a.test.js: b: failed", "tests/a.test.js: c: skipped"],
  ]);
});

test("a report of Playwright", () => {
  const spec = (title: string, ...tests: readonly (readonly [expected: string, status: string])[]) => ({
    title,
    ok: true,
    file: "a.spec.ts",
    line: 1,
    tests: tests.map(([expectedStatus, status]) => ({ expectedStatus, status, projectName: "phone", results: [] })),
  });
  const suites = [
    {
      title: "a.spec.ts",
      file: "a.spec.ts",
      specs: [spec("bad", ["passed", "unexpected"])],
      suites: [
        {
          title: "suite",
          file: "a.spec.ts",
          specs: [
            ...[spec("one", ["passed", "expected"], ["passed", "flaky"]), spec("two", ["skipped", "skipped"])],
            spec("is to fail", ["failed", "expected"]),
          ],
        },
      ],
    },
  ];
  expect(told("playwright", { config: { rootDir: "/workspace/project/e2e" }, suites })).toEqual(
    [
      ...["phone > bad: failed", "phone > suite > one: passed", "phone > suite > one: passed"],
      ...["phone > suite > two: skipped", "phone > suite > is to fail: skipped"],
    ].map((one) => `e2e/a.spec.ts: ${one}`),
  );
});

describe("what is no report", () => {
  const deep = (open: string, close: string) => open.repeat(50_000) + close.repeat(50_000);
  test.each([
    ["of a runner that nobody knows", "toString", "{}"],
    ["empty", "vitest", ""],
    ["cut short", "jest", '{"testResults": [{'],
    ["of another shape", "mocha", '{"passes": {}}'],
    ["of null", "playwright", "null"],
    ["an outcome that there is not", "node-test", '{"file": null, "name": "a", "outcome": "great"}'],
    [
      "a name without an end",
      "node-test",
      JSON.stringify({ file: null, name: "a".repeat(200_000), outcome: "passed" }),
    ],
    [
      "nested without an end",
      "playwright",
      `{"config":{"rootDir":"/"},"suites":${deep('[{"title":"","specs":[],"suites":', "}]")}`,
    ],
  ])("is refused: %s", (_, runner, report) => {
    expect(() => parseReport(runner, report)).toThrow();
  });

  test("names and paths are held short, and paths lead nowhere", () => {
    const long = { file: "../../etc/passwd", name: "a".repeat(5000), outcome: "passed" };
    const [found] = parseReport("node-test", JSON.stringify(long));
    expect(found).toMatchObject({ name: "a".repeat(500) });
  });
});
