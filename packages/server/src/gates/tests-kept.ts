import type { Finding } from "@slipway/contract";
import { parseManifest } from "@slipway/sandbox";
import type { Examined } from "../repository/examine.ts";
import { isTest, type TestChange } from "../repository/tests-changed.ts";
import { findingOf } from "./findings.ts";

export interface Tested {
  /** package.json before and now. */
  readonly before: string | undefined;
  readonly after: string | undefined;
  /** Whether there were tests before. */
  readonly hadTests: boolean;
  /** What is in the commit and is not as it was. */
  readonly changed?: readonly string[];
  readonly examined: Pick<Examined, "tests" | "runners" | "unread">;
}

/** What a candidate has done to the tests that were there before it, so that they find less. */
export function againstTests(gate: string, tested: Tested): Finding[] {
  const { before, after, hadTests, changed = [], examined } = tested;
  const script = scriptMistake(testScript(before), testScript(after));
  return [
    ...(script === undefined ? [] : [findingOf(gate, script, { file: "package.json" })]),
    ...examined.runners
      // Whoever brings the first tests, or another runner, says which there are.
      .filter(({ of, newFor = "" }) => of === "program" || (hadTests && (testScript(before) ?? "").includes(newFor)))
      .map(({ path: file, of }) => findingOf(gate, `${file} ${runnerMistakes[of]}`, { file })),
    ...changed.filter(isInstalled).map((file) => {
      const text = `${file} is among what tests run by, and only an install puts it there. Take node_modules out of git.`;
      return findingOf(gate, text, { file });
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

function isInstalled(path: string): boolean {
  return path.split("/").includes("node_modules");
}

function testScript(manifest: string | undefined): string | undefined {
  return manifest === undefined ? undefined : parseManifest(manifest)?.scripts.get("test");
}

const idle = /^(true|:|exit(\s+0)?|echo\b.*|printf\b.*|)$/;
const swallowed = /(\|\||;|&)\s*(true|:|exit\s+0|echo\b[^|&;]*)\s*$/;

function scriptMistake(before: string | undefined, after: string | undefined): string | undefined {
  if (before === undefined || runsNothing(before)) return undefined;
  if (after === undefined) return "The test script of package.json is gone. Put it back.";
  if (runsNothing(after)) return "The test script of package.json runs no tests any more. Put it back.";
  if (!after.includes(before.trim())) {
    return "The test script of package.json does not run what it ran before. Keep that, and add to it.";
  }
  if (swallowed.test(after) && !swallowed.test(before)) {
    return "The test script of package.json succeeds even when tests fail. Put it back as it was.";
  }
  return undefined;
}

function runsNothing(script: string): boolean {
  return script.split(/&&|\|\||;|&|\n/).every((part) => idle.test(part.trim()));
}

const back = "Put back what is missing: the tests that were there stay, and new work adds its own.";

function changeMistake(change: TestChange): string | undefined {
  const { testsRemoved, testsAdded, assertionsRemoved, assertionsAdded, skipsAdded } = change;
  if (change.change === "deleted") {
    return testsRemoved + assertionsRemoved === 0 ? undefined : `has tests and was deleted. ${back}`;
  }
  if (testsRemoved > testsAdded) return `has lost ${testsRemoved - testsAdded} tests. ${back}`;
  if (assertionsRemoved > assertionsAdded) {
    return `asserts less than before: ${assertionsRemoved} assertions are gone, ${assertionsAdded} are new. ${back}`;
  }
  return skipsAdded > 0 ? `leaves out tests that ran before. Let all of them run.` : undefined;
}
