import { extname } from "node:path/posix";
import type { ChangedFile } from "./changes.ts";

/** What became of a test that was there before. Whether that is weaker is for a gate to say. */
export interface TestChange {
  /** Where it was. */
  readonly path: string;
  readonly change: ChangedFile["change"];
  /** Of one that was deleted: where it is now, and no test any more. */
  readonly movedTo?: string;
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
/** The beginning of a test, up to its options: also behind a table of cases. */
const untilOptions = [
  String.raw`(?:\b(?:it|test|describe|suite|context|specify|scenario)(?:\.\w+){0,5}|\))(?:\s*\(\s*|\s+)`,
  String.raw`(?:"[^"\n]{0,500}"|'[^'\n]{0,500}'|\x60[^\x60]{0,500}\x60|[\w.]{1,60})\s*,\s*`,
].join("");
const manyLines = new RegExp(String.raw`${untilOptions}\{[^{}]*\}`, "g");
/** Most of these words are also those of apps, of to-do lists and of pages: they count where a runner reads them. */
const skip = new RegExp(
  [
    String.raw`\b(it|test|describe|suite|specify|scenario)(\.\w+){0,3}\.(skip|skipIf|todo|only|fails|failing|fixme)\b`,
    String.raw`${untilOptions}\{?[^{}()]{0,200}\b(skip|todo|only|fails)\s*:(?!\s*(false|undefined)\b)`,
    // Options behind a test, or with a name of their own.
    String.raw`^\}\s*,\s*\{[^{}]*\b(todo|only|fails)\s*:\s*true\b|\bskip\s*:\s*true\b`,
    String.raw`\b(t|ctx|context|this)\.(skip|todo|only)\b|(?<![\w.$])skip\(\s*(\)|true\b|["'\x60])|->skip\(\s*(\)|true\b|["'])`,
    String.raw`(?<![\w.$-])(x(it|describe|test|context|specify)|f(describe|test|context))\s*[.(\x60"']`,
    String.raw`(?<![\w.$-])fit(\.\w+)*\s*\(\s*(["'\x60]|$)|^(fit|skip)\s+["']|^skip$|@tag :?skip\b`,
    String.raw`\bt\.Skip|@(Disabled|Ignore)\b|#\[ignore|@skip\w*\b|\b(pytest|unittest)(\.\w+)?\.skip|\bskip(If|Unless|Test)\b`,
    String.raw`\bxfail\b|\bexpectedFailure\b`,
    // The rest of a file's tests, and those that have failed, go with the process.
    String.raw`\bprocess\.(reallyExit|exit)\(\s*0?\s*\)|\bprocess\.exitCode\s*=\s*0|\b(sys\.exit|os\._exit)\(\s*0?\s*\)`,
  ].join("|"),
);

/** By which most runners find them, wherever they are. */
const testName = /(^|[._/-])(test|tests|spec|specs|e2e|cy)\.\w+$|(^|\/)(test_[^/]*|conftest)\.py$|_(test|spec)\.\w+$/;

export function isTest(path: string): boolean {
  return testFile.test(path);
}

export function testChange(file: ChangedFile, before: string, after: string): TestChange {
  const { path: to, from: path = to, change } = file;
  const isLost = isTest(path) && !staysTest(path, to);
  const [was, is] = [withoutComments(path, before), isLost ? "" : withoutComments(to, after)];
  const [assertionsRemoved, assertionsAdded] = compared(asserts, was, is);
  const [testsRemoved, testsAdded] = compared((line) => aTest.test(line), was, is);
  const [, skipsAdded] = compared((line) => skip.test(line), optionsInLine(was), optionsInLine(is));
  const now = isLost ? ({ change: "deleted", movedTo: to } as const) : { change };
  return { path, ...now, assertionsRemoved, assertionsAdded, testsRemoved, testsAdded, skipsAdded };
}

function optionsInLine(text: string): string {
  return text.replace(manyLines, (start) => start.replace(/\s+/g, " "));
}

/** Whether a runner that finds tests by their names finds it there, too. */
function staysTest(from: string, to: string): boolean {
  if (from === to) return true;
  return isTest(to) && languageOf(from) === languageOf(to) && (!testName.test(from) || testName.test(to));
}

function languageOf(path: string): string {
  return extname(path).replace(/^\.[cm]?[jt]sx?$/, ".js");
}

// What is not closed goes on to the end of its line or of the file: so nothing is looked for from each of many beginnings.
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

const literal = String.raw`!*(?:true|false|True|False|null|None|undefined|\d[\d._]*|"[^"]*"|'[^']*'|\[\s*\]|\{\s*\})`;
const sayTrue = String.raw`assert!?|assert\.(?:ok|isOk|isTrue)|assertTrue|(?:EXPECT|ASSERT)_TRUE`;
/** They hold whatever the code under test does. */
const tautologies = new RegExp(
  [
    String.raw`\bexpect\(\s*${literal}\s*\)`,
    String.raw`\bexpect\(\s*([\w.]+)\s*\)\.to(?:Be|Equal|StrictEqual)\(\s*\1\s*\)`,
    String.raw`\b(?:${sayTrue})\(\s*${literal}\s*(?:,[^()]*)?\)`,
    String.raw`\bassert(?:\.\w+|[A-Z]\w*)\(\s*(${literal}|[\w.]+)\s*,\s*\2\s*[,)]`,
    String.raw`\bassert\s+${literal}\s*(?:==\s*${literal}\s*)?(?:,.*)?$`,
    String.raw`\bassert\s+([\w.]+)\s*==\s*\3\s*(?:,.*)?$`,
  ].join("|"),
  "g",
);

function asserts(line: string): boolean {
  return assertion.test(line.replace(tautologies, ""));
}

/** How many lines of a kind are gone, and how many are new. */
function compared(isIt: (line: string) => boolean, before: string, after: string): [removed: number, added: number] {
  const left = new Map<string, number>();
  let added = 0;
  for (const line of linesThat(isIt, before)) left.set(line, (left.get(line) ?? 0) + 1);
  for (const line of linesThat(isIt, after)) {
    const count = left.get(line) ?? 0;
    if (count > 0) left.set(line, count - 1);
    else added++;
  }
  return [left.values().reduce((sum, count) => sum + count, 0), added];
}

function linesThat(isIt: (line: string) => boolean, text: string): string[] {
  return text.split("\n").flatMap((line) => {
    const trimmed = line.trim().slice(0, 2000);
    return /^#(?!\[)/.test(trimmed) || !isIt(trimmed) ? [] : [trimmed];
  });
}
