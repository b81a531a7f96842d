import { describe, expect, test } from "vitest";
import type { TestRun } from "./evidence/evidence.ts";
import type { Judged } from "./findings.ts";
import { againstEvidence, againstSources, type Planned } from "./tests-kept.ts";

const told = ({ against, notes }: Judged) => ({
  against: against.map(({ text }) => text),
  notes: notes.map(({ text }) => text),
});
const plan = (more: Partial<Planned> = {}): Planned => ({
  title: "Prices",
  description: "Show a price for each item.",
  expectedFiles: ["src/prices.js"],
  ...more,
});

describe("by sources", () => {
  const change = { path: "tests/a.test.js", change: "changed", emptied: 0 } as const;
  const sources = (tests: readonly (typeof change | { emptied: number })[], planned?: Planned) =>
    told(againstSources("tests", { tests: tests.map((one) => ({ ...change, ...one })), unread: [] }, [], planned));
  const changed = "Existing tests are changed: tests/a.test.js (changed).";

  test("a change of tests is shown, and those that assert nothing any more are refused", () => {
    expect(sources([])).toEqual({ against: [], notes: [] });
    expect(sources([change])).toEqual({ against: [], notes: [changed] });
    expect(sources([{ emptied: 2 }])).toEqual({
      against: [expect.stringContaining("2 of its tests had assertions")],
      notes: [changed],
    });
  });

  test("what the plan says will change is shown and not refused", () => {
    const planned = plan({ expectedFiles: ["tests/a.test.js"] });
    expect(sources([{ emptied: 2 }], planned)).toEqual({
      against: [],
      notes: [expect.stringContaining("had assertions"), changed],
    });
    expect(sources([{ emptied: 2 }], plan()).against).toHaveLength(1);
  });

  test("tests that cannot be compared are shown; other large files are not", () => {
    const examined = { tests: [], unread: ["tests/large.test.js", "logo.svg"] };
    const { against, notes } = told(againstSources("tests", examined, [], undefined));
    expect([against, notes]).toEqual([[], ["Existing tests are changed: tests/large.test.js."]]);
  });

  test("what is installed has no place in a commit, and may be taken out of it", () => {
    const paths = [
      "node_modules/.bin/node",
      "app/node_modules/vitest/index.js",
      ".venv/bin/python",
      "src/node_modules.ts",
    ];
    const changes = paths.map((path) => ({ path, change: "added" }) as const);
    const gone = { path: "node_modules/old.js", change: "deleted" } as const;
    const { against } = againstSources("tests", { tests: [], unread: [] }, [...changes, gone], undefined);
    expect(against.map(({ file }) => file)).toEqual(paths.slice(0, 3));
  });
});

describe("by evidence", () => {
  const run = (name: string, outcome: TestRun["outcome"] = "passed", file: string | null = "tests/a.test.js") => ({
    file,
    name,
    outcome,
  });
  const judged = (before: readonly TestRun[], after: readonly TestRun[], planned?: Planned) =>
    told(againstEvidence("tests", { tests: before, unread: [] }, { tests: after, unread: [] }, planned));
  const [adds, takes] = [run("adds up"), run("takes away")];

  test("what runs and passes as before is fine", () => {
    expect(judged([adds, takes], [takes, adds, run("more")])).toEqual({ against: [], notes: [] });
  });

  test("what is gone, left out or fails is refused by name and file", () => {
    expect(judged([adds, takes], [takes])).toEqual({
      against: [expect.stringMatching(/^tests\/a\.test\.js: "adds up" passed before and did not run now\./)],
      notes: [],
    });
    expect(judged([adds], [run("adds up", "skipped")]).against).toEqual([expect.stringContaining("skipped now")]);
    expect(judged([adds], [adds, run("new", "failed")]).against).toEqual([
      expect.stringMatching(/"new" failed, whatever the exit code says\./),
    ]);
    expect(judged([run("adds up", "passed", null)], [takes]).against).toEqual([expect.stringMatching(/^Somewhere: /)]);
  });

  test("where nothing ran, all that passed before is told, shortly", () => {
    const many = Array.from({ length: 30 }, (_, index) => run(`adds ${index}`));
    expect(judged(many, []).against).toEqual([expect.stringMatching(/"adds 19", 10 more passed before/)]);
  });

  test("one that has another in its place is shown", () => {
    expect(judged([adds, takes], [adds, run("takes all away")])).toEqual({
      against: [],
      notes: ['tests/a.test.js: "takes away" is gone; others passed in its place.'],
    });
  });

  test.each([
    ["its file", { expectedFiles: ["./tests/a.test.js"] }],
    ["a directory of it", { expectedFiles: ["tests/"] }],
    ["its file, in words", { description: "Drop what tests/a.test.js says of sums." }],
    ["its name", { description: 'The test "adds up" goes.' }],
  ])("one of which the plan names %s is shown", (_, more) => {
    expect(judged([adds, takes], [takes], plan(more))).toEqual({
      against: [],
      notes: [expect.stringContaining("the plan says that the task changes it")],
    });
    expect(judged([adds], [run("adds up", "failed")], plan(more)).against).toHaveLength(1);
  });

  test.each([
    ["another file", { expectedFiles: ["tests/a.test.jsx", "tests/a"] }],
    ["words that are in it", { description: "Something that adds." }],
  ])("one of which the plan names %s is refused", (_, more) => {
    expect(judged([adds, takes], [takes], plan(more)).against).toHaveLength(1);
  });

  test("without a report, the exit code alone is said to have told", () => {
    expect(judged([], [])).toEqual({ against: [], notes: [expect.stringMatching(/^Only the exit code says/)] });
    const unread = { tests: [], unread: ["vitest.7.json"] };
    expect(told(againstEvidence("tests", unread, unread, undefined)).notes).toContainEqual(
      "The report vitest.7.json cannot be read.",
    );
  });
});
