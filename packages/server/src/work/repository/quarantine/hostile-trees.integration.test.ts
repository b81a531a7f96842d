import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openWorld, type WorldWith } from "../../../testing/world.ts";
import type { Maker } from "../testing.ts";

let site: WorldWith<"repository">;
let sandbox: Maker;

beforeAll(async () => {
  site = await openWorld({ repository: "small" });
  sandbox = site.sandbox;
});
afterAll(() => site[Symbol.asyncDispose]());

describe("a tree is refused that has", () => {
  const inRoot = async (mode: string, name: string, content = "x") =>
    await sandbox.tree([[mode, name, await sandbox.object("blob", content)]]);
  const nested = async (name: string) =>
    await sandbox.tree([["40000", name, await inRoot("100644", "config", "[core]\n")]]);
  const commitOf = async (tree: string) => await sandbox.commit({ tree, parents: [site.main] });

  test.each([
    ["../evil"],
    [".."],
    ["."],
    [".git"],
    [".GIT"],
    ["git~1"],
    [".g\u200cit"],
    [".git "],
    ["/etc"],
    ["a/b"],
    [""],
  ])("a file named %j", async (name) => {
    const [finding] = await site.refusalOf(site.offer(await commitOf(await inRoot("100644", name))));
    expect(finding?.message).toMatch(/^git refuses the bundle: git index-pack/);
  });

  test.each([[".git"], [".GiT"], ["GIT~1"], [".git."]])("a directory named %j", async (name) => {
    await site.refusalOf(site.offer(await commitOf(await nested(name))));
    const deep = await sandbox.tree([["40000", "src", await nested(name)]]);
    await site.refusalOf(site.offer(await commitOf(deep)));
  });

  test("such a name only in a commit before its last", async () => {
    const evil = await commitOf(await nested(".git"));
    const clean = await sandbox.commit({ tree: await inRoot("100644", "ok"), parents: [evil] });
    await site.refusalOf(site.offer(clean));
  });

  test.each([
    ["git~2", "is a git directory"],
    [".git::$INDEX_ALLOCATION", "is a git directory"],
    ["a\nb", "has control characters"],
    ["a\u001b[31m", "has control characters"],
    ["a\u202egpj.exe", "has control characters"],
    ["..\\evil", "leaves its directory"],
  ])("a path such as %j, with the path named", async (name, message) => {
    const tree = await sandbox.tree([["40000", "src", await inRoot("100644", name)]]);
    const findings = await site.refusalOf(site.offer(await commitOf(tree)));
    if (!findings[0]?.message.startsWith("git refuses")) expect(findings).toEqual([{ path: `src/${name}`, message }]);
  });

  test("a name that is not UTF-8", async () => {
    const tree = await sandbox.tree([["100644", Buffer.from([0x61, 0xff]), await sandbox.object("blob", "x")]]);
    expect(await site.refusalOf(site.offer(await commitOf(tree)))).toEqual([
      { path: "a\ufffd", message: "is not UTF-8" },
    ]);
  });

  test.each([
    ["/etc/passwd", "is a symbolic link to an absolute path"],
    ["../../etc/passwd", "is a symbolic link out of the tree"],
    ["..", "is a symbolic link out of the tree"],
    ["x/.git/config", "is a symbolic link into a git directory"],
    [`${"x/".repeat(500)}x`, "is a symbolic link of more than 1000 bytes"],
  ])("a symbolic link to %.20s", async (target, message) => {
    expect(await site.refusalOf(site.offer(await commitOf(await inRoot("120000", "link", target))))).toEqual([
      { path: "link", message },
    ]);
  });

  test("a symbolic link that leaves only by way of another", async () => {
    const up = await sandbox.tree([["120000", "up", await sandbox.object("blob", "..")]]);
    const out = await sandbox.object("blob", "a/up/..");
    const tree = await sandbox.tree([
      ["40000", "a", up],
      ["120000", "out", out],
    ]);
    expect(await site.refusalOf(site.offer(await commitOf(tree)))).toEqual([
      { path: "out", message: "is a symbolic link out of the tree" },
    ]);
  });

  test("symbolic links in a circle, or too many; one that stays inside is taken", async () => {
    const link = async (target: string) => await sandbox.object("blob", target);
    const inside = await sandbox.tree([
      ["120000", "a", await link("./dir/c")],
      ["40000", "dir", await sandbox.tree([["120000", "c", await link("../nowhere/file")]])],
    ]);
    expect((await site.offer(await commitOf(inside))).changes).toContainEqual(
      expect.objectContaining({ path: "dir/c" }),
    );
    const circle = await sandbox.tree([
      ["120000", "a", await link("b")],
      ["120000", "b", await link("a")],
    ]);
    expect(await site.refusalOf(site.offer(await commitOf(circle)))).toMatchObject([{ path: "a" }, { path: "b" }]);
    const same = await link("x");
    const many = await sandbox.tree(
      Array.from({ length: 1001 }, (_, index) => ["120000", `l${String(index).padStart(4, "0")}`, same] as const),
    );
    expect(await site.refusalOf(site.offer(await commitOf(many)))).toEqual([
      { path: null, message: "the tree has more than 1000 symbolic links" },
    ]);
  });

  test("a submodule", async () => {
    const tree = await sandbox.tree([["160000", "vendor", site.main]]);
    expect(await site.refusalOf(site.offer(await commitOf(tree)))).toEqual([
      { path: "vendor", message: "is a submodule" },
    ]);
  });

  test("the same name twice, or a mode that is none", async () => {
    const blob = await sandbox.object("blob", "x");
    const twice = await sandbox.tree([
      ["100644", "a", blob],
      ["100644", "a", blob],
    ]);
    await site.refusalOf(site.offer(await commitOf(twice)));
    await site.refusalOf(site.offer(await commitOf(await sandbox.tree([["100666", "a", blob]]))));
    await site.refusalOf(site.offer(await commitOf(await sandbox.tree([["10644", "a", blob]]))));
  });

  test("too many directories in each other", async () => {
    let tree = await inRoot("100644", "leaf");
    for (let depth = 0; depth < 60; depth++) tree = await sandbox.tree([["40000", "d", tree]]);
    const [finding] = await site.refusalOf(site.offer(await commitOf(tree)));
    expect(finding).toEqual({ path: Array(51).fill("d").join("/"), message: "is nested deeper than 50 directories" });
  });

  test("a path that is too long", async () => {
    let tree = await inRoot("100644", "leaf");
    for (let depth = 0; depth < 6; depth++) tree = await sandbox.tree([["40000", "d".repeat(200), tree]]);
    expect((await site.refusalOf(site.offer(await commitOf(tree))))[0]?.message).toBe("is longer than 1000 bytes");
  });

  test("endlessly many files by few objects", async () => {
    let tree = await inRoot("100644", "leaf");
    for (let depth = 0; depth < 12; depth++) {
      const below = tree;
      tree = await sandbox.tree(Array.from({ length: 10 }, (_, index) => ["40000", `d${index}`, below] as const));
    }
    expect(await site.refusalOf(site.offer(await commitOf(tree)))).toEqual([
      { path: null, message: "the tree has more than 100000 files and directories" },
    ]);
  });

  test("100,001 files; 100,000 are taken", async () => {
    const blob = await sandbox.object("blob", "x");
    const some = (count: number) =>
      Array.from({ length: count }, (_, index) => ["100644", `f${String(index).padStart(6, "0")}`, blob] as const);
    const most = await commitOf(await sandbox.tree(some(100_000)));
    expect((await site.offer(most)).changes.length).toBeGreaterThanOrEqual(100_000);
    await site.refusalOf(site.offer(await commitOf(await sandbox.tree(some(100_001)))));
  });

  test("files that are too large, alone or together", async () => {
    const limits = { fileBytes: 1000, totalBytes: 3000 };
    const one = await commitOf(await inRoot("100644", "big", "x".repeat(1001)));
    expect(await site.refusalOf(site.offer(one, limits))).toEqual([
      { path: "big", message: "has 1001 bytes, more than 1000" },
    ]);
    const blob = await sandbox.object("blob", "x".repeat(900));
    const four = await sandbox.tree(["a", "b", "c", "d"].map((name) => ["100644", name, blob] as const));
    expect(await site.refusalOf(site.offer(await commitOf(four), limits))).toEqual([
      { path: null, message: "the tree has more than 3000 bytes" },
    ]);
  });
});
