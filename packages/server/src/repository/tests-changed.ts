import type { ChangedFile } from "./changes.ts";

/** What became of a test that was there before. Whether that is weaker is for a gate to say. */
export interface TestChange {
  /** Where it was. */
  readonly path: string;
  readonly change: ChangedFile["change"];
  /** Lines that assert something, by their text: one that was made weaker counts as removed and added. */
  readonly assertionsRemoved: number;
  readonly assertionsAdded: number;
  readonly testsRemoved: number;
  readonly testsAdded: number;
  /** Tests that are left out from now on, or that leave out all others. */
  readonly skipsAdded: number;
}

const testFile = new RegExp(
  [
    "(^|/)(__tests__|__snapshots__|tests?|specs?|e2e|cypress)/",
    "(^|[._/-])(test|tests|spec|specs|e2e|cy)\\.[^/]+$",
    "(^|/)(test_[^/]*|conftest)\\.py$",
    "_(test|spec)\\.(go|py|rb|exs?|dart|c|cc|cpp)$",
    "(Test|Tests|TestCase|Spec|IT)\\.(java|kt|kts|cs|swift|scala|groovy|php)$",
  ].join("|"),
);

const assertion =
  /\b(expect|assert\w*|should|verify|require|t)(\.\w+){0,5}!?\s*[(`]|\bassert\b|\.should\b|\bXCTAssert\w*|\bt\.(Error|Fatal)f?\(|\b(EXPECT|ASSERT)_\w+/;
const aTest =
  /\b(it|test|describe|specify|context|scenario|suite)(\.\w+){0,5}\s*[(`]|\bdef test_|\bfunc Test\w|#\[(\w+::)?test\]|@(Parameterized)?Test\b|\bTEST(_[FP])?\(/;
const skip =
  /\b(it|test|describe|suite|context)(\.\w+){0,3}\.(skip|skipIf|todo|only|fails|failing|fixme)\b|\b[xf](it|describe|test|context)\b|\bskip(If|Unless)?\b|\bt\.Skip|@(Disabled|Ignore)\b|#\[ignore/;

export function isTest(path: string): boolean {
  return testFile.test(path);
}

export function testChange(file: ChangedFile, before: string, after: string): TestChange {
  const [assertionsRemoved, assertionsAdded] = compared(assertion, before, after);
  const [testsRemoved, testsAdded] = compared(aTest, before, after);
  const [, skipsAdded] = compared(skip, before, after);
  const path = file.from ?? file.path;
  return { path, change: file.change, assertionsRemoved, assertionsAdded, testsRemoved, testsAdded, skipsAdded };
}

/** How many lines with such a text are gone, and how many are new. Comments do not count. */
function compared(pattern: RegExp, before: string, after: string): [removed: number, added: number] {
  const left = new Map<string, number>();
  let added = 0;
  for (const line of linesWith(pattern, before)) left.set(line, (left.get(line) ?? 0) + 1);
  for (const line of linesWith(pattern, after)) {
    const count = left.get(line) ?? 0;
    if (count > 0) left.set(line, count - 1);
    else added++;
  }
  return [left.values().reduce((sum, count) => sum + count, 0), added];
}

function linesWith(pattern: RegExp, text: string): string[] {
  return text.split("\n").flatMap((line) => {
    const trimmed = line.trim().slice(0, 2000);
    return /^(\/\/|#(?!\[)|\*)/.test(trimmed) || !pattern.test(trimmed) ? [] : [trimmed];
  });
}
