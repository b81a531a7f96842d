import { execFile } from "node:child_process";
import { chmod, mkdir, rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { makeWorkplace } from "../testing/workplace.ts";
import { type Changes, openChanges } from "./changes.ts";

const run = promisify(execFile);
const environment = { PATH: process.env["PATH"] ?? "" };

async function setUp() {
  const { directory, workdir } = await makeWorkplace();
  const options = { directory: join(directory, "changes.git"), workdir, environment };
  return { workdir, options, write: (path: string, text: string) => writeFile(join(workdir, path), text) };
}

async function seen(changes: Changes): Promise<string[]> {
  const found: string[] = [];
  await changes.look(async (list) => void found.push(...list.map(({ action, path }) => `${action} ${path}`)));
  return found;
}

test("files at the start are no changes; added, modified and deleted ones are", async () => {
  const { workdir, options, write } = await setUp();
  await write("old.txt", "1");
  const changes = await openChanges(options);
  expect(await seen(changes)).toEqual([]);
  await write("old.txt", "2");
  await write("new ☃\n.txt", "1");
  expect(await seen(changes)).toEqual(["added new ☃\n.txt", "modified old.txt"]);
  await rm(join(workdir, "old.txt"));
  await chmod(join(workdir, "new ☃\n.txt"), 0o755);
  expect(await seen(changes)).toEqual(["modified new ☃\n.txt", "deleted old.txt"]);
  expect(await seen(changes)).toEqual([]);
});

test("a project's own repository is not touched, and its ignored files are ignored", async () => {
  const { workdir, options, write } = await setUp();
  await run("git", ["init", "-q", workdir]);
  await write(".gitignore", "build/\n");
  // A hook and an attribute of the project that would run a program.
  await mkdir(join(workdir, ".git", "hooks"), { recursive: true });
  await writeFile(join(workdir, ".git", "hooks", "post-index-change"), `#!/bin/sh\ntouch ${workdir}/ran\n`, {
    mode: 0o755,
  });
  await write(".gitattributes", "*.txt filter=evil\n");
  await run("git", ["-C", workdir, "config", "filter.evil.clean", `touch ${workdir}/ran; cat`]);
  const changes = await openChanges(options);
  await mkdir(join(workdir, "build"));
  await mkdir(join(workdir, "node_modules"));
  await write("build/out.js", "1");
  await write("node_modules/dep.js", "1");
  await write("a.txt", "1");
  await run("git", ["-C", workdir, "config", "user.name", "someone"]);
  expect(await seen(changes)).toEqual(["added a.txt"]);
  const { stdout } = await run("git", ["-C", workdir, "status", "--porcelain"]);
  expect(stdout).toContain("?? a.txt");
});

test("nested repositories, links and unreadable files cause no failure", async () => {
  const { workdir, options, write } = await setUp();
  const changes = await openChanges(options);
  await run("git", ["init", "-q", join(workdir, "inside")]);
  await symlink("/etc/passwd", join(workdir, "link"));
  await symlink("nowhere", join(workdir, "broken"));
  await run("mkfifo", [join(workdir, "pipe")]);
  await write("a.txt", "1");
  expect(await seen(changes)).toEqual(["added a.txt", "added broken", "added link"]);
});

test("changes between two runners are reported by the next one, even after git was killed", async () => {
  const { options, write } = await setUp();
  await openChanges(options);
  await write("a.txt", "1");
  for (const lock of ["index.lock", "config.lock", "refs/slipway/seen.lock"]) {
    await writeFile(join(options.directory, lock), "");
  }
  expect(await seen(await openChanges(options))).toEqual(["added a.txt"]);
});

test("a look that takes too long reports nothing, and the next one reports it all", async () => {
  const { options, write } = await setUp();
  const { directory } = await makeWorkplace();
  const [slow, program] = [join(directory, "slow"), join(directory, "git")];
  const script = `#!/bin/sh\n[ -e ${slow} ] && exec sleep 1000\nPATH='${environment.PATH}' exec git "$@"\n`;
  await writeFile(program, script, { mode: 0o755 });
  const changes = await openChanges({
    ...options,
    environment: { PATH: `${directory}:${environment.PATH}` },
    lookMs: 10_000,
  });
  await write("a.txt", "1");
  await writeFile(slow, "");
  expect(await seen(changes)).toEqual([]);
  await rm(slow);
  await writeFile(join(options.directory, "index.lock"), "");
  expect(await seen(changes)).toEqual(["added a.txt"]);
});

test("concurrent looks report each change once", async () => {
  const { options, write } = await setUp();
  const changes = await openChanges(options);
  await write("a.txt", "1");
  const lists = await Promise.all(Array.from({ length: 10 }, () => seen(changes)));
  expect(lists.flat()).toEqual(["added a.txt"]);
});

test("a look reports a limited number of changes", async () => {
  const { options, write } = await setUp();
  const changes = await openChanges({ ...options, maxChanges: 3 });
  await Promise.all(Array.from({ length: 10 }, (_, index) => write(`${index}.txt`, "1")));
  expect(await seen(changes)).toHaveLength(3);
});
