import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openWorld, type WorldWith } from "../../testing/world.ts";

let site: WorldWith<"repository">;

const lines = Array.from({ length: 200 }, (_, index) => `line ${index}`);
const text = `${lines.join("\n")}\n`;
const edited = (index: number, word: string) => `${lines.with(index, word).join("\n")}\n`;

beforeAll(async () => {
  site = await openWorld({
    repository: { "a.txt": text, "b.txt": "b\n", "image.bin": "\0binary", "dir/c.txt": "c\n" },
  });
});
afterAll(() => site[Symbol.asyncDispose]());

/** A candidate with these files on top of main. */
async function branchWith(files: Readonly<Record<string, string | null>>, parent = site.main): Promise<string> {
  const commit = await site.sandbox.commit({ files, parents: [parent] });
  await site.offer(commit);
  return commit;
}

describe("a merge", () => {
  test("of changes apart from each other is a tree with both", async () => {
    const { repository } = site;
    const ours = await branchWith({ "a.txt": edited(10, "ours") });
    const theirs = await branchWith({ "a.txt": edited(100, "theirs"), "new.txt": "new\n" });
    const merged = await repository.merge({ ours, theirs });
    if (!merged.clean) throw new Error("it did not merge");
    const commit = await repository.commit({
      tree: merged.tree,
      parents: [ours, theirs],
      message: "Merge",
      atMs: 5000,
    });
    const diff = await repository.diff(site.main, commit);
    expect(diff.text).toContain("+ours\n");
    expect(diff.text).toContain("+theirs\n");
    expect(diff.text).toContain("+new\n");
    expect(await repository.merge({ ours, theirs })).toEqual(merged);
  });

  test.each([
    ["the same line", { "a.txt": edited(100, "ours") }, { "a.txt": edited(100, "theirs") }, ["a.txt"]],
    ["a deletion and a change", { "b.txt": null }, { "b.txt": "changed\n" }, ["b.txt"]],
    ["binaries", { "image.bin": "\0ours" }, { "image.bin": "\0theirs" }, ["image.bin"]],
  ])("of %s names the path in conflict", async (_, one, other, conflicts) => {
    const [ours, theirs] = [await branchWith(one), await branchWith(other)];
    expect(await site.repository.merge({ ours, theirs })).toEqual({ clean: false, conflicts });
  });

  test("of a file and a directory of the same name is a conflict", async () => {
    const ours = await branchWith({ thing: "file\n" });
    const theirs = await branchWith({ "thing/inside": "directory\n" });
    const conflicts = [expect.stringMatching(/^thing~/)];
    expect(await site.repository.merge({ ours, theirs })).toEqual({ clean: false, conflicts });
  });

  test("names the first 50 of many conflicts", async () => {
    const names = Array.from({ length: 60 }, (_, index) => `many/${index}.txt`);
    const ours = await branchWith(Object.fromEntries(names.map((name) => [name, "ours\n"])));
    const theirs = await branchWith(Object.fromEntries(names.map((name) => [name, "theirs\n"])));
    const merged = await site.repository.merge({ ours, theirs });
    expect(!merged.clean && merged.conflicts).toHaveLength(50);
  });

  test("of something that is not a commit fails", async () => {
    const { repository, main } = site;
    await expect(repository.merge({ ours: main, theirs: "0".repeat(40) })).rejects.toMatchObject({
      code: "commit_not_found",
    });
    await expect(repository.merge({ ours: main, theirs: "--help" })).rejects.toMatchObject({ code: "invalid_request" });
  });

  test("takes no driver and no attributes from the tree", async () => {
    const attributes = { ".gitattributes": "*.txt merge=union\nb.txt merge=evil diff=evil filter=evil\n" };
    const ours = await branchWith({ ...attributes, "b.txt": "ours\n" });
    const theirs = await branchWith({ ...attributes, "b.txt": "theirs\n" });
    expect(await site.repository.merge({ ours, theirs })).toEqual({ clean: false, conflicts: ["b.txt"] });
  });
});

describe("overlap", () => {
  test("of 20 branches names the pairs that share files, and those that conflict", async () => {
    const { repository } = site;
    const branches: string[] = [];
    for (let index = 0; index < 20; index++) {
      // Neighbours change the same file: 0 and 1, 2 and 3 ... the same line; the odd ones of every second pair another.
      const pair = Math.floor(index / 2);
      const apart = pair % 2 === 1 && index % 2 === 1;
      branches.push(
        await branchWith({ [`pair-${pair}.txt`]: `${index}\n`, "a.txt": edited(apart ? 150 : pair * 3, `${index}`) }),
      );
    }
    const alone = await branchWith({ "alone.txt": "alone\n" });
    const objects = async () =>
      await readdir(join(site.directory, "build/repository.git/objects"), { recursive: true });
    const before = await objects();
    const overlaps = await repository.overlap({ branches: [...branches, alone] });
    expect(await objects()).toEqual(before);
    // All of them change a.txt.
    expect(overlaps).toHaveLength((20 * 19) / 2);
    const found = (one: string | undefined, other: string | undefined) =>
      overlaps.find(({ commits }) => commits.includes(one ?? "") && commits.includes(other ?? ""));
    expect(found(branches[0], branches[1])).toMatchObject({
      files: ["a.txt", "pair-0.txt"],
      conflicts: ["a.txt", "pair-0.txt"],
    });
    expect(found(branches[2], branches[3])).toMatchObject({
      files: ["a.txt", "pair-1.txt"],
      conflicts: ["pair-1.txt"],
    });
    expect(found(branches[0], branches[4])).toMatchObject({ files: ["a.txt"], conflicts: [] });
    expect(found(branches[0], alone)).toBeUndefined();
    expect(await repository.overlap({ branches: [...branches, alone] })).toEqual(overlaps);
  });

  test("sees conflicts where no file is shared", async () => {
    const ours = await branchWith({ place: "file\n" });
    const theirs = await branchWith({ "place/inside": "directory\n" });
    const [overlap] = await site.repository.overlap({ branches: [ours, theirs] });
    expect(overlap?.files).toEqual([]);
    expect(overlap?.conflicts.length).toBeGreaterThan(0);
  });

  test("of one branch with itself, or of none, is nothing", async () => {
    const one = await branchWith({ self: "1\n" });
    expect(await site.repository.overlap({ branches: [one, one] })).toEqual([]);
    expect(await site.repository.overlap({ branches: [] })).toEqual([]);
  });
});
