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
    ["../a", "leaves its directory"],
    ["a/../../b", "leaves its directory"],
    ["a//b", "leaves its directory"],
    ["./a", "leaves its directory"],
    ["a\\..\\b", "leaves its directory"],
    ["/a", "is absolute"],
    [".git", "is a git directory"],
    ["a/.GIT/config", "is a git directory"],
    ["a/.git . ./x", "is a git directory"],
    [".git:stream", "is a git directory"],
    ["GIT~1", "is a git directory"],
    [".g\u200dit", "is a git directory"],
    ["\ufeff.git", "is a git directory"],
    ["a\\.git\\hooks", "is a git directory"],
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
  ])("%j of %j leads nowhere", (path, links) => expect(mistake(links, path)).toBe("is a symbolic link without an end"));
});
