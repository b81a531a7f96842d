import { execFile } from "node:child_process";
import { mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { hasCode } from "@slipway/contract";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { applyPatch } from "./apply.ts";

const git = promisify(execFile);
let directory: string;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "apply-"));
});
afterEach(() => rm(directory, { recursive: true, force: true }));

const added = (path: string, text = "new\n", mode = "100644") =>
  `diff --git a/${path} b/${path}\nnew file mode ${mode}\n--- /dev/null\n+++ b/${path}\n@@ -0,0 +1 @@\n+${text}`;
const apply = (patch: string | Buffer, to = directory) => applyPatch(Buffer.from(patch), to, process.env);
const refused = (error: unknown) => hasCode(error, "patch_refused");

it("a patch makes, changes and deletes files", async () => {
  await writeFile(join(directory, "old"), "1\n2\n");
  await writeFile(join(directory, "gone"), "x\n");
  const change = "diff --git a/old b/old\n--- a/old\n+++ b/old\n@@ -1,2 +1,2 @@\n 1\n-2\n+3\n";
  const deletion = "diff --git a/gone b/gone\ndeleted file mode 100644\n--- a/gone\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n";
  await apply(`${added("sub/new")}${change}${deletion}`);
  expect(await readFile(join(directory, "old"), "utf8")).toBe("1\n3\n");
  expect(await readFile(join(directory, "sub/new"), "utf8")).toBe("new\n");
  expect((await readdir(directory)).sort()).toEqual(["old", "sub"]);
});

it("bytes that are no UTF-8 arrive as they are", async () => {
  const patch = Buffer.concat([Buffer.from(added("latin", "")), Buffer.from([0xe9, 0xff, 0x0a])]);
  await apply(patch);
  expect(await readFile(join(directory, "latin"))).toEqual(Buffer.from([0xe9, 0xff, 0x0a]));
});

it("a patch for a directory below a repository's root changes that directory", async () => {
  await git("git", ["init", "-q", directory]);
  await mkdir(join(directory, "below"));
  await apply(added("file"), join(directory, "below"));
  expect(await readdir(join(directory, "below"))).toEqual(["file"]);
});

it("a patch runs no filter that the repository's settings name", async () => {
  const witness = join(directory, "witness");
  const filter = `touch '${witness}'; cat`;
  await git("git", ["init", "-q", directory]);
  await git("git", ["-C", directory, "config", "filter.evil.smudge", filter]);
  await git("git", ["-C", directory, "config", "filter.evil.clean", filter]);
  await writeFile(join(directory, ".gitattributes"), "* filter=evil\n");
  await writeFile(join(directory, "old"), "1\n");
  await apply(`${added("new")}diff --git a/old b/old\n--- a/old\n+++ b/old\n@@ -1 +1 @@\n-1\n+2\n`);
  expect((await readdir(directory)).sort()).toEqual([".git", ".gitattributes", "new", "old"]);
  expect(await readFile(join(directory, "old"), "utf8")).toBe("2\n");
});

it("a patch that fits only in part changes nothing", async () => {
  await writeFile(join(directory, "mine"), "changed meanwhile\n");
  const stale = "diff --git a/mine b/mine\n--- a/mine\n+++ b/mine\n@@ -1 +1 @@\n-before\n+after\n";
  await expect(apply(`${added("new")}${stale}`)).rejects.toSatisfy(refused);
  expect(await readdir(directory)).toEqual(["mine"]);
});

describe("a hostile patch is refused, when it writes", () => {
  it.each([
    ["above the directory", "../evil"],
    ["to an absolute path", "/tmp/evil-of-a-patch"],
    ["into .git", ".git/hooks/post-checkout"],
    ["into .git by another spelling", ".GIT/config"],
  ])("%s", async (_, path) => {
    await expect(apply(added(path))).rejects.toSatisfy(refused);
    expect(await readdir(directory)).toEqual([]);
  });

  it("through a symbolic link that is there", async () => {
    await mkdir(join(directory, "in"));
    await mkdir(join(directory, "out"));
    await symlink("../out", join(directory, "in/link"));
    await expect(apply(added("link/evil"), join(directory, "in"))).rejects.toSatisfy(refused);
    expect(await readdir(join(directory, "out"))).toEqual([]);
  });

  it("through a symbolic link that it makes itself", async () => {
    const link = added("link", "/tmp\n\\ No newline at end of file\n", "120000");
    await expect(apply(`${link}${added("link/evil")}`)).rejects.toSatisfy(refused);
    expect(await readdir(directory)).toEqual([]);
  });
});
