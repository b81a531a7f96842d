import { describe, expect, test } from "vitest";
import type { TestChange } from "../repository/tests-changed.ts";
import { againstTests } from "./tests-kept.ts";

const manifest = (test: string | undefined) => JSON.stringify({ scripts: { test } });
const unchanged = { tests: [], runners: [], unread: [] };
const hadTests = true;

describe("a test script", () => {
  test.each([
    ["vitest run", undefined, true],
    ["vitest run", "true", true],
    ["vitest run", "echo no tests && exit 0", true],
    ["vitest run", "vitest run || true", true],
    ["vitest run", "vitest run; exit 0", true],
    ["vitest run", "vitest run & echo fine", true],
    ["vitest run", "vitest run --coverage", false],
    ["vitest run", "tsc && vitest run", false],
    ["vitest run || true", "vitest run || true", false],
    ["echo none yet", "true", false],
    [undefined, undefined, false],
    [undefined, "vitest run", false],
  ])("that was %j and is %j: a finding is %j", (before, after, found) => {
    const findings = againstTests("tests", {
      before: manifest(before),
      after: manifest(after),
      hadTests,
      examined: unchanged,
    });
    expect(findings.length > 0).toBe(found);
  });

  test("that is gone with its manifest, or behind one that is no JSON, is a finding", () => {
    const before = manifest("vitest run");
    expect(againstTests("tests", { before, after: undefined, hadTests, examined: unchanged })).toHaveLength(1);
    expect(againstTests("tests", { before, after: "{", hadTests, examined: unchanged })).toHaveLength(1);
    expect(againstTests("tests", { before: undefined, after: undefined, hadTests, examined: unchanged })).toEqual([]);
  });
});

describe("what tests run by", () => {
  const nothing = { before: undefined, after: undefined, hadTests, examined: unchanged };
  test.each([
    ["program", true, true],
    ["program", false, true],
    ["choice", true, true],
    // Whoever brings the first tests says which there are.
    ["choice", false, false],
  ] as const)("and is a %s that is changed where there were tests (%j): a finding is %j", (of, had, found) => {
    const examined = { ...unchanged, runners: [{ path: "vitest.config.ts", of }] };
    const findings = againstTests("tests", { ...nothing, hadTests: had, examined });
    expect(findings.map(({ file }) => file)).toEqual(found ? ["vitest.config.ts"] : []);
  });

  test("may get settings for a runner that the tests of before do not run by", () => {
    const examined = { ...unchanged, runners: [{ path: "a.config.ts", of: "choice", newFor: "playwright" } as const] };
    const of = (script: string) =>
      againstTests("tests", { before: manifest(script), after: manifest(script), hadTests, examined }).length;
    expect([of("vitest run"), of("playwright test")]).toEqual([0, 1]);
  });

  test("and is installed has no place in a commit", () => {
    const changed = ["node_modules/.bin/node", "app/node_modules/vitest/index.js", "src/node_modules.ts"];
    const findings = againstTests("tests", { ...nothing, changed });
    expect(findings.map(({ file }) => file)).toEqual(changed.slice(0, 2));
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
    const findings = againstTests("tests", { before: undefined, after: undefined, hadTests, examined });
    expect(findings.map(({ file }) => file)).toEqual(found ? ["a.test.ts"] : []);
  });

  test("and can not be looked into any more is a finding; other large files are none", () => {
    const examined = { ...unchanged, unread: ["a.test.ts", "logo.svg"] };
    const findings = againstTests("tests", { before: undefined, after: undefined, hadTests, examined });
    expect(findings).toMatchObject([{ file: "a.test.ts" }]);
  });
});
