import { describe, expect, test } from "vitest";
import { linkMistake, pathMistake } from "./names.ts";

describe("a path", () => {
  test.each([
    ["src/a.ts"],
    [".github/workflows/ci.yml"],
    [".gitignore"],
    [".gitattributes"],
    ["a..b/...c"],
    ["git~x"],
    ["häßlich 🦊.txt"],
    ["digit~1"],
    [".gitx"],
  ])("%j is fine", (path) => expect(pathMistake(path)).toBeUndefined());

  test.each([
    ["../a", "leads out of its directory"],
    ["a/../../b", "leads out of its directory"],
    ["a//b", "leads out of its directory"],
    ["./a", "leads out of its directory"],
    ["a\\..\\b", "leads out of its directory"],
    ["/a", "is absolute"],
    [".git", "is git's own"],
    ["a/.GIT/config", "is git's own"],
    ["a/.git . ./x", "is git's own"],
    [".git:stream", "is git's own"],
    ["GIT~1", "is git's own"],
    [".g\u200dit", "is git's own"],
    ["\ufeff.git", "is git's own"],
    ["a\\.git\\hooks", "is git's own"],
    ["a\u0000b", "has control characters"],
    ["a\u007fb", "has control characters"],
    ["a\u0085b", "has control characters"],
    ["a\u2066b", "has control characters"],
  ])("%j is not", (path, mistake) => expect(pathMistake(path)).toBe(mistake));
});

describe("a symbolic link", () => {
  const mistake = (links: Readonly<Record<string, string>>, path: string) =>
    linkMistake(path, new Map(Object.entries(links)));

  test.each([
    ["a", { a: "b/c" }],
    ["a/b", { "a/b": "../c" }],
    ["a/b", { "a/b": ".." }],
    ["a", { a: "" }],
    ["a", { a: "./././b/../c" }],
    ["x", { x: "dir/up/file", "dir/up": ".." }],
  ])("%j of %j stays", (path, links) => expect(mistake(links, path)).toBeUndefined());

  test.each([
    ["a", { a: ".." }],
    ["a/b", { "a/b": "../.." }],
    ["a", { a: "b/../../c" }],
    ["z", { z: "a/b/up/..", "a/b/up": "../.." }],
    ["z", { z: "one/x", one: "two", two: "a/up", "a/up": "../.." }],
  ])("%j of %j leaves", (path, links) => expect(mistake(links, path)).toBe("is a symbolic link out of the tree"));

  test.each([
    ["a", { a: "a" }],
    ["a", { a: "b", b: "a" }],
    ["a", { a: "b/b/b/b", b: "c/../c/../c", c: "a" }],
  ])("%j of %j leads nowhere", (path, links) =>
    expect(mistake(links, path)).toBe("is a symbolic link that leads nowhere"),
  );
});
