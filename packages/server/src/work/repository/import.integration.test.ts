import { execFile } from "node:child_process";
import { chmod, cp, lstat, mkdir, readdir, readFile, rm, symlink, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { put, stateOf } from "../../testing/git.ts";
import type { CreateOptions } from "./create.ts";
import { type BuildRepository, openBuildRepository } from "./repository.ts";
import { scratchDirectory } from "./testing.ts";

let scratch: string;
let builds = 0;

beforeAll(async () => {
  scratch = await scratchDirectory();
});
afterAll(() => rm(scratch, { recursive: true, force: true }));

const run = promisify(execFile);
const env = {
  ...process.env,
  GIT_CONFIG_GLOBAL: "/dev/null",
  GIT_AUTHOR_NAME: "U",
  GIT_AUTHOR_EMAIL: "u@example.com",
  GIT_COMMITTER_NAME: "U",
  GIT_COMMITTER_EMAIL: "u@example.com",
};
const git = async (directory: string, ...args: string[]) =>
  (await run("git", ["-C", directory, ...args], { env })).stdout;

async function plain(name: string, files: Readonly<Record<string, string>> = {}): Promise<string> {
  const directory = join(scratch, name);
  await mkdir(directory, { recursive: true });
  await put(directory, files);
  return directory;
}

async function repositoryOf(name: string, files: Readonly<Record<string, string>>): Promise<string> {
  const directory = await plain(name, files);
  await git(directory, "init", "-q", "-b", "trunk");
  await git(directory, "add", "-A");
  await git(directory, "commit", "-q", "--no-verify", "-m", "first");
  return directory;
}

interface Made {
  readonly directory: string;
  readonly repository: BuildRepository;
  readonly main: string;
  readonly origin: unknown;
  files(): Promise<string[]>;
}

async function importOf(from: CreateOptions["from"], limits: CreateOptions["limits"] = {}): Promise<Made> {
  const directory = join(scratch, `build-${++builds}`);
  const repository = await openBuildRepository({ directory, environment: process.env });
  const { main, origin } = await repository.create({ from, atMs: 0, limits });
  return {
    directory: join(directory, "repository.git"),
    repository,
    main,
    origin,
    async files() {
      const archive = join(scratch, `${builds}.tar`);
      await writeFile(archive, repository.files(main));
      return (await run("tar", ["-tf", archive])).stdout.split("\n").filter((name) => name !== "");
    },
  };
}

const files = { "package.json": "{}\n", "src/a.js": "1\n", ".gitignore": "node_modules\n" };
const names = [".gitignore", "package.json", "src/", "src/a.js"];

describe("a user's repository", () => {
  test("becomes one commit with its files, and is not changed", async () => {
    const directory = await repositoryOf("whole", files);
    await put(directory, { "src/a.js": "2\n" });
    await git(directory, "commit", "-qam", "second");
    await put(directory, { "note.txt": "mine\n", "node_modules/x/index.js": "x\n" });
    const before = await stateOf(directory);
    const made = await importOf({ directory });
    expect(await stateOf(directory)).toEqual(before);
    expect(await made.files()).toEqual(names);
    const commit = (await git(directory, "rev-parse", "HEAD")).trim();
    const object = Buffer.from(await git(directory, "cat-file", "commit", "HEAD")).toString("base64");
    expect(made.origin).toEqual({ commit, branch: "trunk", object, untracked: { paths: ["note.txt"], count: 1 } });
    expect(await made.repository.create({ from: "empty", atMs: 9 })).toEqual({ main: made.main, origin: made.origin });
  });

  test("with changes that are not committed is refused, with their names, unless they are to be left out", async () => {
    const directory = await repositoryOf("dirty", { ...files, "b.js": "b\n" });
    await put(directory, { "src/a.js": "edited\n", "b.js": "staged\n", "c.js": "new\n" });
    await git(directory, "add", "b.js", "c.js");
    const before = await stateOf(directory);
    const refusal = importOf({ directory });
    await expect(refusal).rejects.toMatchObject({ code: "repository_refused", retry: "never" });
    await expect(refusal).rejects.toThrow("has 3 uncommitted changes (b.js, c.js, src/a.js): commit or stash");
    const made = await importOf({ directory, uncommitted: "leave-out" });
    expect(await stateOf(directory)).toEqual(before);
    const tree = (at: string, commit: string) => git(at, "rev-parse", `${commit}^{tree}`);
    expect(await tree(made.directory, made.main)).toBe(await tree(directory, "HEAD"));
  });

  test("is not taken for changed because a file was only touched", async () => {
    const directory = await repositoryOf("touched", files);
    await run("touch", ["-d", "2020-01-01", join(directory, "src/a.js")]);
    expect(await (await importOf({ directory })).files()).toEqual(names);
  });

  test("that is empty begins an empty main", async () => {
    const directory = await plain("unborn");
    await git(directory, "init", "-q");
    const made = await importOf({ directory });
    expect(await made.files()).toEqual([]);
    expect(made.origin).toMatchObject({ commit: null });
  });

  test("without commits brings the files that are not ignored", async () => {
    const directory = await plain("uncommitted", { ...files, "node_modules/x.js": "x\n" });
    await git(directory, "init", "-q", "-b", "trunk");
    await git(directory, "add", "package.json");
    const before = await stateOf(directory);
    const made = await importOf({ directory });
    expect(await made.files()).toEqual(names);
    expect(made.origin).toEqual({ commit: null, branch: "trunk", untracked: { paths: [], count: 0 } });
    expect(await stateOf(directory)).toEqual(before);
  });

  test("that is shallow, bare or a linked worktree is as good as any", async () => {
    const whole = await repositoryOf("origin", files);
    await git(whole, "commit", "-q", "--allow-empty", "-m", "second");
    await git(scratch, "clone", "-q", "--depth", "1", `file://${whole}`, "shallow");
    await git(scratch, "clone", "-q", "--bare", whole, "bare.git");
    await git(whole, "worktree", "add", "-q", join(scratch, "linked"));
    await git(scratch, "clone", "-q", "--shared", whole, 'with : and "alternates"');
    for (const name of ["shallow", "bare.git", "linked", 'with : and "alternates"']) {
      const before = await stateOf(join(scratch, name));
      expect(await (await importOf({ directory: join(scratch, name) })).files()).toEqual(names);
      expect(await stateOf(join(scratch, name))).toEqual(before);
    }
  });

  test("runs nothing of its own: no hook, filter, monitor or helper", async () => {
    const directory = await repositoryOf("armed", { ...files, ".gitattributes": "* filter=evil diff=evil\n" });
    const trace = join(scratch, "ran");
    const evil = join(scratch, "evil.sh");
    await writeFile(evil, `#!/bin/sh\necho "$0 $@" >> ${trace}\ncat\n`);
    await chmod(evil, 0o755);
    for (const hook of [
      "post-index-change",
      "pre-commit",
      "post-checkout",
      "reference-transaction",
      "fsmonitor-watchman",
    ]) {
      await cp(evil, join(directory, ".git/hooks", hook));
    }
    const config = ["filter.evil.clean", "filter.evil.process", "diff.evil.command", "diff.external", "core.fsmonitor"];
    for (const key of [
      ...config,
      "core.sshCommand",
      "core.pager",
      "uploadpack.packObjectsHook",
      "core.alternateRefsCommand",
    ]) {
      await git(directory, "config", key, evil);
    }
    await run("touch", [join(directory, "src/a.js")]);
    expect(await (await importOf({ directory })).files()).toEqual([".gitattributes", ...names]);
    await expect(lstat(trace)).rejects.toThrow("ENOENT");
  });

  test("with a submodule, or a link that leads out, is refused with its path", async () => {
    const directory = await repositoryOf("modules", files);
    const head = (await git(directory, "rev-parse", "HEAD")).trim();
    await git(directory, "update-index", "--add", "--cacheinfo", `160000,${head},vendor/lib`);
    await git(directory, "commit", "-q", "-m", "module");
    await expect(importOf({ directory })).rejects.toThrow('"vendor/lib" is a submodule');
    const linked = await plain("links", files);
    await symlink("/etc/passwd", join(linked, "users"));
    await git(linked, "init", "-q");
    await git(linked, "add", "-A");
    await git(linked, "commit", "-q", "-m", "link");
    await expect(importOf({ directory: linked })).rejects.toThrow('"users" is a symbolic link to an absolute path');
  });

  test("that is huge is refused before it is copied", async () => {
    const directory = await repositoryOf("huge", { ...files, "data.bin": "x".repeat(5000) });
    const started = importOf({ directory }, { fileBytes: 4000 });
    await expect(started).rejects.toMatchObject({ code: "repository_refused" });
    await expect(started).rejects.toThrow('"data.bin" has 5000 bytes, more than 4000');
    await expect(importOf({ directory }, { entries: 2 })).rejects.toThrow("more than 2 files");
    await expect(importOf({ directory }, { totalBytes: 4000 })).rejects.toThrow("more than 4000 bytes");
  });

  test("that is damaged, partial or of other objects is refused in git's words", async () => {
    const damaged = await repositoryOf("damaged", files);
    const blob = (await git(damaged, "rev-parse", "HEAD:src/a.js")).trim();
    await rm(join(damaged, ".git/objects", blob.slice(0, 2), blob.slice(2)), { force: true });
    await expect(importOf({ directory: damaged })).rejects.toMatchObject({ code: "repository_refused" });
    const sha256 = await plain("sha256", files);
    await git(sha256, "init", "-q", "--object-format=sha256");
    await expect(importOf({ directory: sha256 })).rejects.toThrow("does not use SHA-1");
    const broken = await plain("broken", { ".git/HEAD": "nonsense" });
    await expect(importOf({ directory: broken })).rejects.toMatchObject({ code: "repository_refused" });
  });

  test("is named by its root", async () => {
    const directory = await repositoryOf("root", files);
    const below = importOf({ directory: join(directory, "src") });
    await expect(below).rejects.toMatchObject({ code: "repository_refused" });
    await expect(below).rejects.toThrow(`is inside the repository ${directory}`);
  });
});

describe("plain files", () => {
  test("become one commit, without those that are ignored", async () => {
    const directory = await plain("plain", { ...files, "node_modules/x.js": "x\n" });
    const before = await stateOf(directory);
    expect(await (await importOf({ directory })).files()).toEqual(names);
    expect(await stateOf(directory)).toEqual(before);
  });

  test("with a repository among them, or too much, are refused", async () => {
    const directory = await plain("around", files);
    await repositoryOf("around/inner", { "x.js": "x\n" });
    await expect(importOf({ directory })).rejects.toThrow("contains another repository: inner/");
    const large = await plain("large", files);
    await truncate(join(await plain("large", { sparse: "" }), "sparse"), 10 * 1024 ** 3);
    await expect(importOf({ directory: large })).rejects.toThrow("sparse has 10737418240 bytes");
  });

  test("that are not there are an invalid request", async () => {
    await expect(importOf({ directory: join(scratch, "nowhere") })).rejects.toMatchObject({ code: "invalid_request" });
    const file = join(await plain("holder", { file: "x" }), "file");
    await expect(importOf({ directory: file })).rejects.toMatchObject({ code: "invalid_request" });
  });
});

test("a refused import leaves nothing, and another may follow", async () => {
  const directory = join(scratch, "again");
  const repository = await openBuildRepository({ directory, environment: process.env });
  await expect(repository.main()).rejects.toMatchObject({ code: "commit_not_found" });
  const from = { directory: join(scratch, "nowhere") };
  await expect(repository.create({ from, atMs: 0 })).rejects.toMatchObject({ code: "invalid_request" });
  expect(await readdir(directory, { recursive: true })).toEqual(["quarantine"]);
  const { main } = await repository.create({ from: "empty", atMs: 0 });
  expect(await repository.main()).toBe(main);
  expect(await readFile(join(directory, "repository.git/HEAD"), "utf8")).toBe("ref: refs/heads/main\n");
});
