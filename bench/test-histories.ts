/**
 * How many commits of real histories the gate would refuse for what they do to the sources of tests, and for tests that
 * are gone: `node bench/test-histories.ts <git directory>...`. All of these commits are honest: each refusal is a mistake.
 */
import { execFileSync } from "node:child_process";
import { isTest, testChange } from "@slipway/server/tests-changed";

const commitsEach = 150;
const git = (directory: string, ...args: readonly string[]) =>
  execFileSync("git", ["--git-dir", directory, ...args], { encoding: "utf8", maxBuffer: 1024 ** 3 });

const all = { commits: 0, emptied: 0, gone: 0 };
for (const directory of process.argv.slice(2)) {
  const own = { commits: 0, emptied: 0, gone: 0 };
  for (const commit of git(directory, "rev-list", "--no-merges", "--max-count=4000", "HEAD").split("\n")) {
    if (own.commits === commitsEach || commit === "") break;
    const files = changedTests(directory, commit);
    if (files.length === 0) continue;
    own.commits++;
    const emptied = files.filter(({ file, before, after }) => testChange(file, before, after).emptied > 0);
    if (emptied.length > 0) own.emptied++;
    if (hasLost(files)) own.gone++;
    for (const { file } of emptied) console.log(`${directory} ${commit} ${file.path}`);
  }
  for (const key of ["commits", "emptied", "gone"] as const) all[key] += own[key];
  console.log(directory, JSON.stringify(own));
}
console.log("all", JSON.stringify(all));

interface Changed {
  readonly file: Parameters<typeof testChange>[0];
  readonly before: string;
  readonly after: string;
}

/** Those that were there before. */
function changedTests(directory: string, commit: string): Changed[] {
  const changes = git(
    directory,
    "diff-tree",
    "--root",
    "-r",
    "-M",
    "-z",
    "--no-commit-id",
    "--raw",
    "--abbrev=40",
    commit,
  );
  const [, ...parts] = changes.split(/\0?:(?=\d{6} )/);
  return parts.flatMap((part): Changed[] => {
    const [about = "", from = "", to = from] = part.split("\0");
    const [, , was = "", is = "", status = ""] = about.split(" ");
    if (status === "A" || !isTest(from) || !/\.[cm]?[jt]sx?$/.test(from)) return [];
    const content = (blob: string) => (/^0+$/.test(blob) ? "" : git(directory, "cat-file", "blob", blob));
    const [path, change] = [
      to || from,
      status === "D" ? "deleted" : status[0] === "R" ? "renamed" : "changed",
    ] as const;
    return [{ file: { path, change, from, before: was, after: is }, before: content(was), after: content(is) }];
  });
}

/** As far as names can be read in sources: more tests of a file are gone than came in their place. */
function hasLost(files: readonly Changed[]): boolean {
  const names = (text: string) =>
    [...text.matchAll(/(?<![\w.$])(?:it|test)(?:\.\w+)*\(\s*(["'`])(.+?)\1\s*,/g)].map(([, , name]) => name);
  const present = new Set(files.flatMap(({ after }) => names(after)));
  return files.some(({ before, after }) => {
    const [was, is] = [names(before), names(after)];
    const lost = was.filter((name) => !present.has(name)).length;
    return lost > is.filter((name) => !was.includes(name)).length;
  });
}
