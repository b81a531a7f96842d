/** One test, as a runner's own report has it. */
export interface TestRun {
  /** Relative to the project. */
  readonly file: string | null;
  readonly name: string;
  readonly outcome: "passed" | "failed" | "skipped";
}

/** What shows that tests ran: the reports of the project's runners. Code that is under test can forge them. */
export interface Evidence {
  readonly tests: readonly TestRun[];
  /** Reports that could not be read. */
  readonly unread: readonly string[];
}

export const noEvidence: Evidence = { tests: [], unread: [] };

/** What a run of tests lacks against the one before it. */
export interface Difference {
  /** Passed before, and do not now: they are left out, have failed, or are gone. */
  readonly lost: readonly LostTest[];
  /** Are gone, and as many others have passed in the same file. */
  readonly replaced: readonly TestRun[];
  /** Fail, and did not fail before. */
  readonly failed: readonly TestRun[];
}

export interface LostTest extends TestRun {
  readonly how: "gone" | "skipped" | "failed";
}

/** A test that passes in another file than before was moved. Tests of one name are as many tests. */
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

/** Those of `all` that have no partner among the others. */
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
