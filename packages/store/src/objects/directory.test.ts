import { mkdtempSync, readdirSync, rmSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { describeObjectStorage } from "./conformance/suite.ts";
import { openDirectoryStorage } from "./directory.ts";
import { draftsDirectory } from "./storage.ts";

const directory = mkdtempSync(join(tmpdir(), "slipway-objects-"));
afterAll(() => rmSync(directory, { recursive: true }));

describeObjectStorage("a directory", () => openDirectoryStorage(join(directory, "conformance")));

test("objects are plain files that only their owner can read, and copies share their bytes", async () => {
  const root = join(directory, "plain");
  const storage = await openDirectoryStorage(root);
  await storage.put("a/b/c.txt", "content");
  await storage.copy("a/b/c.txt", "d/e.txt");
  for (const path of ["", "a", "a/b", "d"]) expect(statSync(join(root, path)).mode & 0o777).toBe(0o700);
  for (const path of ["a/b/c.txt", "d/e.txt"]) expect(statSync(join(root, path)).mode & 0o777).toBe(0o400);
  expect(statSync(join(root, "d/e.txt")).ino).toBe(statSync(join(root, "a/b/c.txt")).ino);
  expect(readdirSync(join(root, draftsDirectory))).toEqual([]);
});

test("nobody else can put anything beside the storage, whatever the umask", async () => {
  const umask = process.umask(0);
  try {
    await openDirectoryStorage(join(directory, "home/state/storage"));
  } finally {
    process.umask(umask);
  }
  for (const path of ["home", "home/state", "home/state/storage"]) {
    expect(statSync(join(directory, path)).mode & 0o022).toBe(0);
  }
});

test("what a killed process had begun is removed a day later", async () => {
  const root = join(directory, "abandoned");
  await openDirectoryStorage(root);
  const [old, young] = ["old", "young"].map((name) => join(root, draftsDirectory, name)) as [string, string];
  for (const path of [old, young]) writeFileSync(path, "half");
  const longAgo = Date.now() / 1000 - 25 * 3600;
  utimesSync(old, longAgo, longAgo);
  await openDirectoryStorage(root);
  expect(readdirSync(join(root, draftsDirectory))).toEqual(["young"]);
});
