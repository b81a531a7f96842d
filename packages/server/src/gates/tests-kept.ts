import type { Finding } from "@slipway/contract";
import type { Examined } from "../repository/examine.ts";
import { isTest, type TestChange } from "../repository/tests-changed.ts";
import { findingOf } from "./findings.ts";
import { scriptMistakes, type TestSetup, testCommands } from "./test-scripts.ts";

export interface Tested {
  readonly before: TestSetup;
  readonly after: TestSetup;
  /** What is in the commit and is not as it was. */
  readonly changed?: readonly string[];
  readonly examined: Pick<Examined, "tests" | "runners" | "unread">;
}

/** What a candidate has done to the tests that were there before it, so that they find less. */
export function againstTests(gate: string, tested: Tested): Finding[] {
  const { before, after, changed = [], examined } = tested;
  const ranBy = testCommands(before);
  return [
    ...scriptMistakes(before, after).map(({ file, text }) => findingOf(gate, text, { file })),
    ...examined.runners
      // Whoever brings the first tests, or another runner, says which there are.
      .filter(({ of, newFor = "" }) => of === "program" || (before.hasTests && ranBy.includes(newFor)))
      .map(({ path: file, of }) => findingOf(gate, `${file} ${runnerMistakes[of]}`, { file })),
    ...changed.flatMap((file) => {
      const directory = installedIn(file);
      if (directory === undefined) return [];
      const text = `${file} is among what tests run by, and only an install puts it there. Take ${directory} out of git.`;
      return [findingOf(gate, text, { file })];
    }),
    ...examined.tests.flatMap((change) => {
      const mistake = changeMistake(change);
      return mistake === undefined ? [] : [findingOf(gate, `${change.path} ${mistake}`, { file: change.path })];
    }),
    ...examined.unread.filter(isTest).map((file) => {
      const text = `${file} can not be compared with what it was: it is too large, or too much was changed at once.`;
      return findingOf(gate, text, { file });
    }),
  ];
}

const runnerMistakes = {
  program: "changes what runs the tests. Put it back as it was.",
  choice: "changes which tests are run, or what counts as a failure. Put that back as it was.",
} as const;

function installedIn(path: string): string | undefined {
  return path.split("/").find((name) => name === "node_modules" || name === ".venv");
}

const back = "Put back what is missing: the tests that were there stay, and new work adds its own.";

function changeMistake(change: TestChange): string | undefined {
  const { testsRemoved, testsAdded, assertionsRemoved, assertionsAdded, skipsAdded } = change;
  if (change.change === "deleted") {
    const what = change.movedTo === undefined ? "deleted" : `moved to ${change.movedTo}, where it runs no more`;
    return testsRemoved + assertionsRemoved === 0 ? undefined : `has tests and was ${what}. ${back}`;
  }
  if (testsRemoved > testsAdded) return `has lost ${testsRemoved - testsAdded} tests. ${back}`;
  if (assertionsRemoved > assertionsAdded) {
    return `asserts less than before: ${assertionsRemoved} assertions are gone, ${assertionsAdded} are new. ${back}`;
  }
  return skipsAdded > 0 ? `leaves out tests that ran before. Let all of them run.` : undefined;
}
