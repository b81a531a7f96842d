/** One test from a runner's own report. */
export interface TestRun {
  /** Relative to the project. */
  readonly file: string | null;
  readonly name: string;
  readonly outcome: "passed" | "failed" | "skipped";
}

/** The reports of the project's test runners. Code under test can forge them. */
export interface Evidence {
  readonly tests: readonly TestRun[];
  /** Unreadable reports. */
  readonly unread: readonly string[];
}

export const noEvidence: Evidence = { tests: [], unread: [] };

/** What a test run lacks compared with an earlier one. */
export interface Difference {
  /** Passed before and now are skipped, have failed, or are gone. */
  readonly lost: readonly LostTest[];
  /** Gone, but at least as many new tests passed in the same file. */
  readonly replaced: readonly TestRun[];
  /** Fail now and did not before. */
  readonly failed: readonly TestRun[];
}

export interface LostTest extends TestRun {
  readonly how: "gone" | "skipped" | "failed";
}

/** A test that now passes in another file was moved. Tests with the same name count separately. */
export function compareEvidence(before: Evidence, after: Evidence): Difference {
  const [wasPassed, isPassed] = [before, after].map(({ tests }) => tests.filter(({ outcome }) => outcome === "passed"));
  const inPlace = without(wasPassed ?? [], isPassed ?? [], keyOf);
  const gained = without(isPassed ?? [], wasPassed ?? [], keyOf);
  const missing = without(inPlace, gained, nameOf);
  const free = Map.groupBy(without(gained, inPlace, nameOf), ({ file }) => file);
  const outcomes = new Map(after.tests.map((test) => [keyOf(test), test.outcome]));
  const lost: LostTest[] = [];
  const replaced: TestRun[] = [];
  for (const [file, tests] of Map.groupBy(missing, (test) => test.file)) {
    const found = tests.map((test) => ({ ...test, how: howOf(outcomes.get(keyOf(test))) }));
    const gone = found.filter(({ how }) => how === "gone");
    const isReplaced = gone.length <= (free.get(file)?.length ?? 0);
    if (isReplaced) replaced.push(...gone);
    lost.push(...found.filter(({ how }) => !isReplaced || how !== "gone"));
  }
  const failedBefore = new Set(before.tests.filter(({ outcome }) => outcome === "failed").map(keyOf));
  const failed = after.tests.filter((test) => test.outcome === "failed" && !failedBefore.has(keyOf(test)));
  return { lost, replaced, failed: without(failed, lost, keyOf) };
}

function howOf(outcome: TestRun["outcome"] | undefined): LostTest["how"] {
  return outcome === undefined || outcome === "passed" ? "gone" : outcome;
}

/** The elements of `all` without a partner in `others`. */
function without<T extends TestRun>(
  all: readonly T[],
  others: readonly TestRun[],
  key: (test: TestRun) => string,
): T[] {
  const left = new Map<string, number>();
  for (const other of others) left.set(key(other), (left.get(key(other)) ?? 0) + 1);
  return all.filter((test) => {
    const count = left.get(key(test)) ?? 0;
    if (count > 0) left.set(key(test), count - 1);
    return count === 0;
  });
}

const nameOf = ({ name }: TestRun) => name;
const keyOf = ({ file, name }: TestRun) => `${file}\0${name}`;
