import { lstat, mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TreeEntry } from "@slipway/sandbox";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { staysInside, writeTree } from "./hold.ts";

let base: string;
let to: string;

beforeEach(async () => {
  base = await mkdtemp(join(tmpdir(), "slipway-hold-"));
  to = join(base, "out", "tree");
  await mkdir(join(base, "out"));
  await writeFile(join(base, "secret"), "untouched");
});
afterEach(() => rm(base, { recursive: true, force: true }));

const file = (path: string, content = "evil", mode = 0o644): TreeEntry => ({ type: "file", path, mode, content });
const directory = (path: string, mode = 0o755): TreeEntry => ({ type: "directory", path, mode });
const link = (path: string, target: string): TreeEntry => ({ type: "symlink", path, target });

async function* stream(entries: readonly TreeEntry[]) {
  yield* entries;
}

function write(...entries: TreeEntry[]) {
  return writeTree(to, stream(entries), { signal: new AbortController().signal, onBytes() {} });
}

/** Nothing beside the destination has come, gone or changed. */
async function expectOutsideUntouched() {
  expect((await readdir(base)).sort()).toEqual(["out", "secret"]);
  expect(await readdir(join(base, "out"))).toEqual(["tree"]);
  expect(await readFile(join(base, "secret"), "utf8")).toBe("untouched");
}

describe("an honest tree", () => {
  test("arrives with content, modes and links inside", async () => {
    const report = await write(
      directory("", 0o755),
      directory("bin"),
      file("bin/run", "#!/bin/sh\n", 0o755),
      directory("locked", 0o500),
      file("locked/x", "x"),
      link("bin/latest", "run"),
      link("top", "bin/run"),
      link("bin/up", "../locked/x"),
      file("implied/deep/y", "y"),
    );
    expect(report).toEqual({ entries: 9, bytes: 12, leftOut: [] });
    expect(await readFile(join(to, "top"), "utf8")).toBe("#!/bin/sh\n");
    expect(await readFile(join(to, "bin/up"), "utf8")).toBe("x");
    expect((await stat(join(to, "bin/run"))).mode & 0o777).toBe(0o755);
    expect((await stat(join(to, "locked"))).mode & 0o777).toBe(0o700);
    expect((await readdir(to)).sort()).toEqual(["bin", "implied", "locked", "top"]);
  });

  test("replaces files that are there and keeps others", async () => {
    await mkdir(to);
    await writeFile(join(to, "a"), "old");
    await writeFile(join(to, "b"), "kept");
    await write(file("a", "new"));
    expect(await readFile(join(to, "a"), "utf8")).toBe("new");
    expect(await readFile(join(to, "b"), "utf8")).toBe("kept");
  });

  test("loses set-user-id bits", async () => {
    await write(file("su", "", 0o6755), directory("d", 0o2755));
    expect((await stat(join(to, "su"))).mode & 0o7777).toBe(0o755);
    expect((await stat(join(to, "d"))).mode & 0o7777).toBe(0o755);
  });
});

describe("a hostile tree", () => {
  const refused: [string, TreeEntry[], string][] = [
    ["a file above", [file("../secret")], "path_outside"],
    ["a file above, further in", [directory("a"), file("a/../../secret")], "path_outside"],
    ["an absolute file", [file("/tmp/slipway-absolute")], "path_outside"],
    ["a directory above", [directory("..")], "path_outside"],
    ["a link above", [link("../x", "y")], "path_outside"],
    ["a NUL in a name", [file("a\0b")], "path_outside"],
    ["a file in place of the root", [file(".")], "not_a_directory"],
    ["a file twice", [file("a"), file("a")], "invalid_request"],
    ["a file twice by another spelling", [file("a/b"), file("a//./b")], "invalid_request"],
    ["a directory, then a link of that name", [directory("a"), link("a", ".."), file("a/secret")], "invalid_request"],
    ["a link, then a file of that name", [link("a", "../../secret"), file("a")], "invalid_request"],
    ["a file below a file", [file("a"), file("a/b")], "not_a_directory"],
  ];
  test.each(refused)("%s is refused", async (_, entries, code) => {
    await expect(write(...entries)).rejects.toMatchObject({ code });
    await expectOutsideUntouched();
  });

  test("a file through the tree's own link lands in a directory, and the link is left out", async () => {
    const { leftOut } = await write(directory("inside"), link("a", "inside"), file("a/x", "x"));
    expect(leftOut).toEqual([{ path: "a", reason: "a directory is in place of the link" }]);
    expect(await readdir(join(to, "inside"))).toEqual([]);
    expect((await lstat(join(to, "a"))).isDirectory()).toBe(true);
    await expectOutsideUntouched();
  });

  test.each([
    ["link", "/etc/passwd"],
    ["link", "../../secret"],
    ["a/link", "../../secret"],
    ["link", ".."],
    ["link", "a/../../secret"],
    ["link", ""],
  ])("a link %s -> %j is left out and told", async (path, target) => {
    const { leftOut } = await write(directory("a"), link(path, target));
    expect(leftOut).toEqual([{ path, reason: expect.stringContaining("points outside") }]);
    await expect(lstat(join(to, path))).rejects.toMatchObject({ code: "ENOENT" });
  });

  test("links that lead out only together are left out", async () => {
    const up = link("x/y/up", "../..");
    const { leftOut } = await write(directory("x"), directory("x/y"), up, link("out", "x/y/up/.."));
    expect(leftOut.map(({ path }) => path)).toEqual(["out"]);
  });

  test("a device is left out and told", async () => {
    const device = { type: "other", path: "null", mode: 0o666 } as unknown as TreeEntry;
    expect((await write(device)).leftOut).toEqual([{ path: "null", reason: expect.stringContaining("neither") }]);
  });

  test("a link that lies in the destination is not written through", async () => {
    await mkdir(to);
    await symlink(base, join(to, "dir"));
    await symlink(join(base, "secret"), join(to, "file"));
    await expect(write(file("dir/secret"))).rejects.toMatchObject({ code: "path_outside" });
    await expect(write(directory("dir", 0o777))).rejects.toMatchObject({ code: "path_outside" });
    await write(file("file", "new"));
    expect(await readFile(join(to, "file"), "utf8")).toBe("new");
    expect((await lstat(join(to, "file"))).isSymbolicLink()).toBe(false);
    await expectOutsideUntouched();
  });

  test("a directory that becomes a link while the tree arrives is noticed", async () => {
    async function* swapping(): AsyncGenerator<TreeEntry> {
      yield directory("a");
      yield file("a/first", "1");
      await rm(join(to, "a"), { recursive: true });
      await symlink(base, join(to, "a"));
      yield file("a/secret");
    }
    const options = { signal: new AbortController().signal, onBytes() {} };
    await expect(writeTree(to, swapping(), options)).rejects.toMatchObject({ code: "path_outside" });
    await expectOutsideUntouched();
  });

  test("a failure in the middle of a file leaves no half of it", async () => {
    async function* content() {
      yield Buffer.from("half");
      throw new Error("cut");
    }
    await expect(write({ type: "file", path: "a", mode: 0o644, content: content() })).rejects.toThrow("cut");
    expect(await readdir(to)).toEqual([]);
  });

  test("whatever the entries are, nothing outside changes and no link leads out", async () => {
    const part = fc.constantFrom("a", "b", "..", ".", "", "c");
    const path = fc.array(part, { minLength: 1, maxLength: 4 }).map((parts) => parts.join("/"));
    const entry = fc.oneof(
      path.map((where) => file(where)),
      path.map((where) => directory(where, 0o700)),
      fc.tuple(path, path).map(([where, target]) => link(where, target)),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(entry, { maxLength: 8 }), async (entries) => {
        await rm(to, { recursive: true, force: true });
        await write(...entries).catch((error: unknown) => expect(error).toHaveProperty("code"));
        await expectOutsideUntouched();
        for (const found of await readdir(to, { recursive: true, withFileTypes: true })) {
          if (!found.isSymbolicLink()) continue;
          const resolved = await stat(join(found.parentPath, found.name)).catch(() => undefined);
          const outside = [await stat(base), await stat(join(base, "out")), await stat(join(base, "secret"))];
          expect(outside.map(({ ino }) => ino)).not.toContain(resolved?.ino);
        }
      }),
      { numRuns: 150 },
    );
  });
});

test.each([
  ["a", "b", true],
  ["a/b", "../c", true],
  ["a/b", "../../c", false],
  ["a", "./b/c", true],
  ["a", "b/../c", false],
  ["a", "..", false],
  ["a/b", "..", true],
])("%s -> %s stays inside: %s", (path, target, expected) => {
  expect(staysInside(path.split("/"), target)).toBe(expected);
});

test("a tree whose destination cannot be written fails as this machine's failure", async () => {
  await writeFile(join(base, "out", "tree"), "a file");
  await expect(write(file("a"))).rejects.toMatchObject({ code: "EEXIST" });
});
