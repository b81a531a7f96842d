import { describe, expect, test } from "vitest";
import type { TestChange } from "../repository/tests-changed.ts";
import { againstTests } from "./tests-kept.ts";

const setup = (scripts: Record<string, string>, hasTests = true) => ({
  ...{ names: new Set(["package.json"]), hasTests },
  manifests: new Map([["package.json", JSON.stringify({ scripts })]]),
});
const unchanged = { tests: [], runners: [], unread: [] };
const nothing = { before: setup({}), after: setup({}), examined: unchanged };

test("a script that tests ran by and that is gone is a finding, and says what to put back", () => {
  const before = setup({ test: "vitest run" });
  expect(againstTests("tests", { ...nothing, before })).toEqual([
    {
      ...{ gate: "tests", file: "package.json" },
      text: 'The test script of package.json is gone, and tests run by it. Put it back: "vitest run".',
    },
  ]);
});

describe("what tests run by", () => {
  test.each([
    ["program", true, true],
    ["program", false, true],
    ["choice", true, true],
    // Whoever brings the first tests says which there are.
    ["choice", false, false],
  ] as const)("and is a %s that is changed where there were tests (%j): a finding is %j", (of, had, found) => {
    const examined = { ...unchanged, runners: [{ path: "vitest.config.ts", of }] };
    const findings = againstTests("tests", { ...nothing, before: setup({}, had), examined });
    expect(findings.map(({ file }) => file)).toEqual(found ? ["vitest.config.ts"] : []);
  });

  test("may get settings for a runner that the tests of before do not run by", () => {
    const examined = { ...unchanged, runners: [{ path: "a.config.ts", of: "choice", newFor: "playwright" } as const] };
    const of = (scripts: Record<string, string>) =>
      againstTests("tests", { before: setup(scripts), after: setup(scripts), examined }).length;
    expect([of({ test: "vitest run" }), of({ test: "playwright test" })]).toEqual([0, 1]);
    expect(of({ test: "npm run unit && npm run e2e", unit: "vitest run", e2e: "playwright test" })).toBe(1);
    const python = { names: new Set(["requirements.txt"]), manifests: new Map(), hasTests: true };
    const settings = { ...unchanged, runners: [{ path: "pytest.ini", of: "choice", newFor: "pytest" } as const] };
    expect(againstTests("tests", { before: python, after: python, examined: settings })).toHaveLength(1);
  });

  test("and is installed has no place in a commit", () => {
    const changed = ["node_modules/.bin/node", "app/node_modules/vitest/index.js", ".venv/bin/python"];
    const findings = againstTests("tests", { ...nothing, changed: [...changed, "src/node_modules.ts"] });
    expect(findings.map(({ file }) => file)).toEqual(changed);
  });
});

describe("a test that was there before", () => {
  const change: TestChange = {
    ...{ path: "a.test.ts", change: "changed", assertionsRemoved: 0, assertionsAdded: 0 },
    ...{ testsRemoved: 0, testsAdded: 0, skipsAdded: 0 },
  };
  test.each<[string, Partial<TestChange>, boolean]>([
    ["rewritten with as many assertions", { assertionsRemoved: 3, assertionsAdded: 3 }, false],
    ["with more tests than before", { testsRemoved: 1, testsAdded: 4 }, false],
    ["with fewer tests", { testsRemoved: 2, testsAdded: 1 }, true],
    ["with fewer assertions", { assertionsRemoved: 2, assertionsAdded: 1 }, true],
    ["that is left out", { skipsAdded: 1 }, true],
    ["deleted", { change: "deleted", testsRemoved: 1 }, true],
    ["deleted, with nothing in it", { change: "deleted" }, false],
    ["renamed and weakened", { change: "renamed", assertionsRemoved: 1 }, true],
  ])("%s: a finding is %j", (_, is, found) => {
    const examined = { ...unchanged, tests: [{ ...change, ...is }] };
    const findings = againstTests("tests", { ...nothing, examined });
    expect(findings.map(({ file }) => file)).toEqual(found ? ["a.test.ts"] : []);
  });

  test("and can not be looked into any more is a finding; other large files are none", () => {
    const examined = { ...unchanged, unread: ["a.test.ts", "logo.svg"] };
    const findings = againstTests("tests", { ...nothing, examined });
    expect(findings).toMatchObject([{ file: "a.test.ts" }]);
  });
});
