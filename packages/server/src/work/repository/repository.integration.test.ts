import { execFile } from "node:child_process";
import { readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openWorld, type WorldWith } from "../../testing/world.ts";
import { openBuildRepository } from "./repository.ts";
import { createMaker, scratchDirectory } from "./testing.ts";

const run = promisify(execFile);
let site: WorldWith<"repository">;

beforeAll(async () => {
  site = await openWorld({ repository: { "README.md": "# App\n", "src/a.txt": "a\n" } });
});
afterAll(() => site[Symbol.asyncDispose]());

async function branchWith(files: Readonly<Record<string, string | Buffer | null>>): Promise<string> {
  const commit = await site.sandbox.commit({ files, parents: [site.main] });
  await site.offer(commit);
  return commit;
}

async function saved(chunks: AsyncIterable<Uint8Array>): Promise<string> {
  const path = join(site.directory, `${Math.random()}`);
  await writeFile(path, chunks);
  return path;
}

describe("main", () => {
  test("is the same commit for the same beginning", async () => {
    await using first = await openWorld({ repository: { a: "1\n" } });
    await using second = await openWorld({ repository: { a: "1\n" } });
    expect(first.main).toBe(second.main);
  });

  test("is made once by many who begin at once", async () => {
    const directory = await scratchDirectory();
    const open = async (atMs: number) => {
      const repository = await openBuildRepository({ directory, environment: process.env });
      return await repository.create({ from: "empty", atMs });
    };
    const made = await Promise.all([1, 2, 3, 4].map((index) => open(index * 1000)));
    expect(new Set(made.map(({ main }) => main)).size).toBe(1);
    expect((await readdir(directory)).toSorted()).toEqual(["quarantine", "repository.git"]);
    await rm(directory, { recursive: true });
  });

  test("moves forward by one of many, and to where it is already by none", async () => {
    await using own = await openWorld({ repository: "small" });
    const { repository, main } = own;
    const { tree } = await emptyChange(own);
    const next = await Promise.all(
      Array.from({ length: 5 }, (_, index) =>
        repository.commit({ tree, parents: [main], message: `${index}`, atMs: 0 }),
      ),
    );
    const moves = await Promise.allSettled(next.map((commit) => repository.moveMain(main, commit)));
    const moved = moves.findIndex((move) => move.status === "fulfilled" && move.value);
    expect(moves.filter(({ status }) => status === "rejected")).toHaveLength(4);
    expect(moves.find(({ status }) => status === "rejected")).toMatchObject({
      reason: { code: "main_moved", retry: "later" },
    });
    expect(await repository.main()).toBe(next[moved]);
    expect(await repository.moveMain(main, next[moved] ?? "")).toBe(false);
  });

  test("does not move back, aside or to what is not there", async () => {
    const { repository, main } = site;
    const { tree } = await emptyChange(site);
    const orphan = await repository.commit({ tree, parents: [], message: "Orphan", atMs: 0 });
    await expect(repository.moveMain(main, orphan)).rejects.toMatchObject({ code: "invalid_request" });
    await expect(repository.moveMain(main, "1".repeat(40))).rejects.toMatchObject({ code: "commit_not_found" });
    await expect(repository.moveMain(main, tree)).rejects.toMatchObject({ code: "commit_not_found" });
    expect(await repository.main()).toBe(main);
  });
});

async function emptyChange({ sandbox, main, offer }: WorldWith<"repository">) {
  return await offer(await sandbox.commit({ parents: [main] }));
}

describe("a commit", () => {
  test("is the same for the same values", async () => {
    const { repository, main } = site;
    const { tree } = await emptyChange(site);
    const options = { tree, parents: [main], message: "Merge a task\n\nwith ünïcode\n\n", atMs: 1_700_000_000_999 };
    const commit = await repository.commit(options);
    expect(await repository.commit({ ...options, message: options.message.trim() })).toBe(commit);
    expect(await repository.commit({ ...options, atMs: 1_700_000_001_000 })).not.toBe(commit);
    const { stdout } = await run("git", [
      "--git-dir",
      join(site.directory, "build/repository.git"),
      "cat-file",
      "-p",
      commit,
    ]);
    expect(stdout).toBe(
      [
        `tree ${tree}`,
        `parent ${main}`,
        "author Slipway <slipway@localhost> 1700000000 +0000",
        "committer Slipway <slipway@localhost> 1700000000 +0000",
        "",
        "Merge a task\n\nwith ünïcode\n",
      ].join("\n"),
    );
  });
});

describe("the files of a commit", () => {
  test("come as they are, whatever attributes say", async () => {
    const files = {
      ".gitattributes":
        "* export-subst text eol=crlf ident filter=evil working-tree-encoding=UTF-16\nhidden.txt export-ignore\n",
      "src/.gitattributes": "* export-ignore export-subst\n",
      "hidden.txt": "hidden\n",
      "src/subst.txt": "$Format:%H%n%an$ $Id$\n",
    };
    const commit = await branchWith(files);
    const archive = await saved(site.repository.files(commit));
    const { stdout: list } = await run("tar", ["-tf", archive]);
    expect(list.split("\n")).toEqual(
      expect.arrayContaining([".gitattributes", "hidden.txt", "src/.gitattributes", "src/a.txt", "src/subst.txt"]),
    );
    for (const [path, content] of Object.entries(files)) {
      expect((await run("tar", ["-xOf", archive, path])).stdout).toBe(content);
    }
  });

  test("stop when nobody reads on, and are told to be missing", async () => {
    const commit = await branchWith({ "large.bin": Buffer.alloc(5 * 1024 ** 2, 1) });
    for await (const chunk of site.repository.files(commit)) {
      expect(chunk.length).toBeGreaterThan(0);
      break;
    }
    const missing = Array.fromAsync(site.repository.files("2".repeat(40)));
    await expect(missing).rejects.toMatchObject({ code: "commit_not_found" });
  });
});

describe("a bundle for a sandbox", () => {
  test("brings main to one that has nothing, and on from there", async () => {
    await using own = await openWorld({ repository: "small" });
    const { repository, sandbox, main, directory } = own;
    const fresh = await createMaker(join(directory, "fresh"));
    await fresh.git(["fetch", "-q", await saved(repository.bundle({ tip: main })), "refs/heads/main:refs/heads/main"]);
    const commit = await sandbox.commit({ files: { "next.txt": "next\n" }, parents: [main] });
    await own.offer(commit);
    await repository.moveMain(main, commit);
    const update = await saved(repository.bundle({ base: main, tip: commit }));
    await fresh.git(["fetch", "-q", update, "refs/heads/main:refs/heads/main"]);
    expect((await fresh.git(["show", "main:next.txt"])).toString()).toBe("next\n");
    const nothingNew = await saved(repository.bundle({ base: commit, tip: commit }));
    await fresh.git(["fetch", "-q", nothingNew, "refs/heads/main"]);
    await fresh.git(["fsck", "--strict"]);
  });

  test("can be read only by who has its base", async () => {
    const commit = await branchWith({ "more.txt": "more\n" });
    const stranger = await createMaker(join(site.directory, "stranger"));
    const bundle = await saved(site.repository.bundle({ base: site.main, tip: commit }));
    await expect(stranger.git(["fetch", "-q", bundle, "refs/heads/main"])).rejects.toThrow("prerequisite");
  });
});

describe("a difference", () => {
  test("is told by file and as text, cut at a line", async () => {
    const commit = await branchWith({ "src/a.txt": "b\n", "README.md": null, "long.txt": "line\n".repeat(1000) });
    expect(await site.repository.changedFiles(site.main, commit)).toMatchObject([
      { path: "README.md", change: "deleted", after: undefined },
      { path: "long.txt", change: "added", before: undefined },
      { path: "src/a.txt", change: "changed" },
    ]);
    const whole = await site.repository.diff(site.main, commit);
    expect(whole).toMatchObject({ cut: false, text: expect.stringContaining("-a\n+b\n") });
    const part = await site.repository.diff(site.main, commit, { mostBytes: 300 });
    expect(part.cut).toBe(true);
    expect(part.text.length).toBeLessThanOrEqual(300);
    expect(whole.text.startsWith(part.text)).toBe(true);
    expect(part.text.endsWith("\n")).toBe(true);
  });

  test("of a commit with itself is none", async () => {
    expect(await site.repository.changedFiles(site.main, site.main)).toEqual([]);
    expect(await site.repository.diff(site.main, site.main)).toEqual({ text: "", cut: false });
  });
});

test("many packs become few when the repository is opened, and nothing is lost", async () => {
  await using own = await openWorld({ repository: "small" });
  const bare = await createMaker(join(own.directory, "build/repository.git"));
  const blobs: string[] = [];
  for (let count = 0; count < 52; count++) {
    const blob = await bare.object("blob", `${count}`);
    await bare.git(["pack-objects", "-q", join(bare.directory, "objects/pack/pack")], `${blob}\n`);
    blobs.push(blob);
  }
  await bare.git(["prune-packed", "-q"]);
  const packs = async () =>
    (await readdir(join(bare.directory, "objects/pack"))).filter((name) => name.endsWith(".pack")).length;
  expect(await packs()).toBeGreaterThan(50);
  await openBuildRepository({ directory: join(own.directory, "build"), environment: process.env });
  expect(await packs()).toBeLessThan(10);
  for (const [count, blob] of blobs.entries()) {
    expect((await bare.git(["cat-file", "blob", blob])).toString()).toBe(`${count}`);
  }
});

test("a machine without the programs is told apart from what they refuse", async () => {
  const directory = join(site.directory, "no-git");
  const repository = await openBuildRepository({ directory, environment: { PATH: "/nonexistent" } });
  await expect(repository.create({ from: "empty", atMs: 0 })).rejects.toMatchObject({ code: "component_missing" });
});
