import { extname } from "node:path/posix";
import type { ChangedFile } from "./changes.ts";

/** The change of a file with tests. Its sources do not tell which of the tests run. */
export interface TestChange {
  /** The old path. */
  readonly path: string;
  readonly change: ChangedFile["change"];
  /** Tests that asserted something before and assert nothing now. */
  readonly emptied: number;
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

export function isTest(path: string): boolean {
  return testFile.test(path);
}

export function testChange(file: ChangedFile, before: string, after: string): TestChange {
  const { path: to, from: path = to, change } = file;
  const [was, is] = [countTests(withoutComments(path, before)), countTests(withoutComments(to, after))];
  // A deleted test does not count as emptied.
  const emptied = Math.max(0, Math.min(was.asserting - is.asserting, is.empty - was.empty));
  return { path, change, emptied };
}

/** The old and the new source of a file. */
export interface FileTexts {
  readonly path: string;
  readonly before: string;
  readonly after: string;
}

/** Counts, by old path, tests that moved to another file and lost their assertions. */
export function emptiedElsewhere(files: readonly FileTexts[]): ReadonlyMap<string, number> {
  const lists = files.map(({ path, before, after }) => {
    const [was, is] = [before, after].map((text) => testsIn(withoutComments(path, text)));
    return { path, was: was ?? [], is: is ?? [] };
  });
  const arrived = new Map<string, number>();
  for (const { was, is } of lists) {
    const known = new Set(was.map(({ title }) => title));
    for (const { title, asserts } of is)
      if (!asserts && !known.has(title)) arrived.set(title, (arrived.get(title) ?? 0) + 1);
  }
  const emptied = new Map<string, number>();
  for (const { path, was, is } of lists) {
    const kept = new Set(is.map(({ title }) => title));
    for (const { title, asserts } of was) {
      const left = arrived.get(title) ?? 0;
      if (title === "" || !asserts || kept.has(title) || left === 0) continue;
      arrived.set(title, left - 1);
      emptied.set(path, (emptied.get(path) ?? 0) + 1);
    }
  }
  return emptied;
}

/** The start of a test, which ends where the next one starts. */
const beginning = new RegExp(
  [
    String.raw`(?<![\w.$])(?:it|test|specify|scenario)(?:\.\w+){0,5}\s*[(\x60]|\bt\.test\(|\bdef test_|\bfunc Test\w`,
    String.raw`#\[(?:\w+::)?test\]|@(?:Parameterized)?Test\b|\bTEST(?:_[FP])?\(`,
  ].join("|"),
  "g",
);
const assertion =
  /\b(expect\w*|assert\w*|should|verify\w*|check\w*|require|throws|rejects|t)(\.\w+){0,5}!?\s*[(`]|\bassert\b|\.should\b|\bXCTAssert\w*|\bt\.(Error|Fatal)f?\(|\b(EXPECT|ASSERT)_\w+/;
/** Runners report an expected failure as passed. */
const isToFail = /^\w+(\.\w+)*\.(fails|failing|fail)\b|^[^\n]*\bfails\s*:\s*true\b|\btest\.fail\(/;

function countTests(text: string): { asserting: number; empty: number } {
  const tests = testsIn(text);
  const asserting = tests.filter(({ asserts }) => asserts).length;
  return { asserting, empty: tests.length - asserting };
}

/** A test without a name has the title "". */
function testsIn(text: string): { readonly title: string; readonly asserts: boolean }[] {
  const starts = [...text.matchAll(beginning)].map(({ index }) => index);
  return starts.map((start, index) => {
    const test = text.slice(start, starts[index + 1]);
    const [, , inQuotes, plain] = titled.exec(test) ?? [];
    return {
      title: inQuotes ?? plain ?? "",
      asserts: assertion.test(test.replace(tautologies, "")) && !isToFail.test(test),
    };
  });
}

const titled = /^(?:[\w.]{1,60}\(\s*(["'`])([^"'`\n]{1,500})\1|(?:def|func) (\w+))/;

// An unclosed quote reaches to the end of its line or of the file, so that matching stays linear.
const quoted = String.raw`"(?:\\.|[^"\\\n])*"?|'(?:\\.|[^'\\\n])*'?`;
const template = String.raw`\x60(?:\\[\s\S]|[^\x60\\])*\x60?`;
const comments = {
  python: new RegExp(String.raw`"""[\s\S]*?(?:"""|$)|'''[\s\S]*?(?:'''|$)|(${quoted})|#.*`, "g"),
  others: new RegExp(String.raw`(${quoted}|${template})|\/\/.*|\/\*[\s\S]*?(?:\*\/|$)`, "g"),
};

function withoutComments(path: string, text: string): string {
  const pattern = extname(path) === ".py" ? comments.python : comments.others;
  return text.replace(pattern, (_, kept: string | undefined) => kept ?? "");
}

const literal = String.raw`!*(?:true|false|True|False|null|None|undefined|\d[\d._]*|"[^"\n]*"|'[^'\n]*'|\[\s*\]|\{\s*\})`;
const sayTrue = String.raw`assert!?|assert\.(?:ok|isOk|isTrue)|assertTrue|(?:EXPECT|ASSERT)_TRUE`;
/** Assertions that hold whatever the code under test does. */
const tautologies = new RegExp(
  [
    String.raw`(?<!\.)\bexpect\(\s*${literal}\s*\)`,
    String.raw`\bexpect\(\s*([\w.]+)\s*\)\.to(?:Be|Equal|StrictEqual)\(\s*\1\s*\)`,
    String.raw`\b(?:${sayTrue})\(\s*${literal}\s*(?:,[^()\n]*)?\)`,
    String.raw`\bassert(?:\.\w+|[A-Z]\w*)\(\s*(${literal}|[\w.]+)\s*,\s*\2\s*[,)]`,
    String.raw`\bassert\s+${literal}\s*(?:==\s*${literal}\s*)?(?:,.*)?$`,
    String.raw`\bassert\s+([\w.]+)\s*==\s*\3\s*(?:,.*)?$`,
  ].join("|"),
  "gm",
);
