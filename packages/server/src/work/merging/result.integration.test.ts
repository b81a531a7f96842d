import { execFile } from "node:child_process";
import { access, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { newId } from "@slipway/contract";
import { expect, it, onTestFinished } from "vitest";
import { commit, git, makeTheirs } from "../../testing/git.ts";
import { openWorld } from "../../testing/world.ts";
import { createRepositories } from "../repository/repositories.ts";
import { createResults, readResult } from "./result.ts";

const execute = promisify(execFile);

/** A build on somebody's repository, and what it has merged. */
async function setUp(from: "theirs" | "empty" = "theirs") {
  const world = await openWorld({});
  onTestFinished(() => world[Symbol.asyncDispose]());
  const { directory } = world;
  const theirs = await makeTheirs(join(directory, "theirs"));
  const build = newId("bld");
  const repositories = createRepositories({ directory: join(directory, "builds"), environment: process.env });
  const repository = await repositories.of(build);
  await repository.create({ from: from === "empty" ? from : { directory: theirs }, atMs: 0 });
  const own = repositories.directoryOf(build);
  const warnings: string[] = [];
  const parts = { repositories, environment: process.env, warn: (message: string) => void warnings.push(message) };
  const results = createResults(parts);
  let merges = 0;
  /** One more file on main. */
  const merge = async () => {
    const main = await repository.main();
    const bare = join(own, "repository.git");
    const blob = await git(bare, "hash-object", "-w", join(theirs, "list.txt"));
    const name = `made-${++merges}.txt`;
    const { stdout: entries } = await execute("git", ["-C", bare, "ls-tree", main]);
    await writeFile(join(directory, "tree"), `${entries}100644 blob ${blob}\t${name}\n`);
    const tree = await execute("sh", ["-c", 'git -C "$0" mktree < "$1"', bare, join(directory, "tree")]);
    const options = { tree: tree.stdout.trim(), parents: [main], message: `Add ${name}`, atMs: 1000 * merges };
    await repository.moveMain(main, await repository.commit(options));
  };
  const result = async () => readResult(own);
  /** As its user does by what the build's view says. */
  const mergeThere = async (...how: string[]) => {
    const { repository: path = "", branch = "" } = (await result()) ?? {};
    await git(theirs, "fetch", "-q", path, branch);
    return await git(theirs, "merge", ...how, "FETCH_HEAD");
  };
  return {
    directory,
    theirs,
    build,
    own,
    repository,
    results,
    again: () => createResults(parts),
    warnings,
    merge,
    result,
    mergeThere,
  };
}

it("what a build has made of somebody's repository is merged there by git, as a fast-forward, merge after merge", async () => {
  const { theirs, build, own, results, again, merge, result, mergeThere } = await setUp();
  await merge();
  await results.update(build);
  expect(await result()).toEqual({ repository: join(own, "result.git"), branch: `slipway/${build}` });
  await mergeThere("--ff-only");
  for (const _ of [2, 3]) await merge();
  await Promise.all([results.update(build), results.update(build)]);
  await mergeThere("--ff-only");
  const made = ["Add made-3.txt", "Add made-2.txt", "Add made-1.txt"];
  expect((await git(theirs, "log", "--format=%s")).split("\n")).toEqual([...made, "two", "one"]);
  expect(await readFile(join(theirs, "made-3.txt"), "utf8")).toBe("two\n");
  await git(theirs, "fsck", "--strict");
  // Its past is all there, as it was.
  await expect(access(join(theirs, ".git/shallow"))).rejects.toThrow("ENOENT");
  // A process that knows nothing of the first one's work makes the same of it.
  const before = await git(join(own, "result.git"), "rev-parse", "HEAD");
  await merge();
  await again().update(build);
  expect(await git(join(own, "result.git"), "rev-parse", "HEAD~1")).toBe(before);
});

it("it is merged as any other branch where theirs has moved on, and can be cloned", async () => {
  const { directory, theirs, own, build, results, merge, mergeThere } = await setUp();
  await merge();
  await results.update(build);
  const theirOwn = await commit(theirs, "three", { "other.txt": "three\n" });
  await expect(mergeThere("--ff-only")).rejects.toThrow(/fast-forward/i);
  await mergeThere("-q", "--no-edit");
  expect(await git(theirs, "rev-parse", "HEAD^1")).toBe(theirOwn);
  expect(await readFile(join(theirs, "made-1.txt"), "utf8")).toBe("two\n");
  await git(directory, "clone", "-q", join(own, "result.git"), "copy");
  expect(await git(join(directory, "copy"), "log", "--format=%s")).toBe("Add made-1.txt\ntwo");
});

it("a build that began with nothing of anybody's has no other result than main", async () => {
  const { build, results, warnings, merge, result } = await setUp("empty");
  await merge();
  await results.update(build);
  expect([await result(), warnings]).toEqual([null, []]);
});

it.each([
  ["another commit than it is said to be", "Y29tbWl0"],
  ["not kept, as by earlier versions", undefined],
])("a commit of theirs that is %s is built upon by nothing", async (_, object) => {
  const { own, build, results, merge, result } = await setUp();
  const path = join(own, "repository.git/origin.json");
  const origin = JSON.parse(await readFile(path, "utf8"));
  await writeFile(path, JSON.stringify({ ...origin, object }));
  await merge();
  await results.update(build);
  expect(await result()).toBe(null);
});
