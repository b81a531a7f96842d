import type { Finding, Task } from "@slipway/contract";
import type { ChangedFile } from "../repository/changes.ts";
import type { Examined } from "../repository/quarantine/examine.ts";
import { isTest } from "../repository/tests-changed.ts";
import { compareEvidence, type Evidence, type TestRun } from "./evidence/evidence.ts";
import { findingOf, type Judged } from "./findings.ts";

/** What a plan says of a task. */
export type Planned = Pick<Task, "title" | "description" | "expectedFiles">;

const maxTold = 20;

/** Judges by sources alone what a candidate did to the existing tests. */
export function againstSources(
  gate: string,
  examined: Pick<Examined, "tests" | "unread">,
  changes: readonly Pick<ChangedFile, "path" | "change">[],
  planned: Planned | undefined,
): Judged {
  const emptied = examined.tests.flatMap(({ path: file, emptied }) => {
    if (emptied === 0) return [];
    const text = `${file}: ${emptied} of its tests had assertions and have none now. Restore them.`;
    return [findingOf(gate, text, { file })];
  });
  const installed = changes.flatMap(({ path: file, change }) => {
    const directory = change === "deleted" ? undefined : installedIn(file);
    if (directory === undefined) return [];
    const text = `${file} can change how tests run; only an install may write there. Remove ${directory} from git.`;
    return [findingOf(gate, text, { file })];
  });
  const changed = [
    ...examined.tests.map(({ path, change }) => `${path} (${change})`),
    ...examined.unread.filter(isTest),
  ];
  const note = findingOf(gate, `Existing tests are changed: ${told(changed)}.`);
  const isFree = ({ file = "" }: Finding) => mayChange(planned, file, "");
  return {
    against: [...installed, ...emptied.filter((finding) => !isFree(finding))],
    notes: [...emptied.filter(isFree), ...(changed.length === 0 ? [] : [note])],
  };
}

/** Judges by what ran: each test that passed before must run and pass. */
export function againstEvidence(gate: string, before: Evidence, after: Evidence, planned: Planned | undefined): Judged {
  const { lost, replaced, failed } = compareEvidence(before, after);
  const isFree = ({ file, name, how }: (typeof lost)[number]) =>
    how !== "failed" && mayChange(planned, file ?? "", name);
  const perFile = (tests: readonly TestRun[], words: string) =>
    [...Map.groupBy(tests, ({ file }) => file)].map(([file, own]) => {
      const text = `${file ?? "Somewhere"}: ${told(own.map(({ name }) => JSON.stringify(name)))} ${words}`;
      return findingOf(gate, text, file === null ? {} : { file });
    });
  const refused = Map.groupBy(
    lost.filter((test) => !isFree(test)),
    ({ how }) => how,
  );
  return {
    against: [
      ...perFile(refused.get("gone") ?? [], `passed before and did not run now. ${back}`),
      ...perFile(refused.get("skipped") ?? [], `passed before and is skipped now. ${back}`),
      ...perFile([...(refused.get("failed") ?? []), ...failed], "failed, whatever the exit code says."),
    ],
    notes: [
      ...perFile(lost.filter(isFree), "passed before and did not run now; the plan says that the task changes it."),
      ...perFile(replaced, "is gone; others passed in its place."),
      ...(after.tests.length === 0 ? [findingOf(gate, noReport)] : []),
      ...after.unread.map((name) => findingOf(gate, `The report ${name} cannot be read.`)),
    ],
  };
}

const back = "Keep the existing tests and let them run; add new tests for new work.";
const noReport = "Only the exit code says that the tests passed: no test runner left a report of which tests ran.";

/** Whether the plan says, by file or by name, that the task changes the test. */
function mayChange(planned: Planned | undefined, file: string, name: string): boolean {
  if (planned === undefined) return false;
  const paths = planned.expectedFiles.map((path) => path.replace(/^\.?\//, "").replace(/\/$/, ""));
  const words = `${planned.title}\n${planned.description}`;
  const isNamed = [file, name].some((one) => one.length >= minNamed && words.includes(one));
  return isNamed || (file !== "" && paths.some((path) => path === file || file.startsWith(`${path}/`)));
}

/** Shorter names could be ordinary words. */
const minNamed = 6;

function installedIn(path: string): string | undefined {
  return path.split("/").find((name) => name === "node_modules" || name === ".venv");
}

function told(all: readonly string[]): string {
  const rest = all.length - maxTold;
  return [...all.slice(0, maxTold), ...(rest > 0 ? [`${rest} more`] : [])].join(", ");
}
