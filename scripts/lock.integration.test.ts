import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const root = fileURLToPath(new URL("..", import.meta.url));
const locks = execFileSync("git", ["ls-files", "*package-lock.json"], { cwd: root, encoding: "utf8" })
  .trim()
  .split("\n");

interface Lock {
  readonly packages: Readonly<Record<string, { version?: string; resolved?: string; link?: boolean }>>;
}

/** A package without a version is one that the registry lacked when the lock was written: the day it has it, `npm ci` fails. */
test.each(locks)("%s names a version of every package, and no registry", (path) => {
  const { packages } = JSON.parse(readFileSync(join(root, path), "utf8")) as Lock;
  const installed = Object.entries(packages).filter(([at, { link }]) => at.includes("node_modules/") && !link);
  expect(installed.filter(([, { version }]) => version === undefined)).toEqual([]);
  expect(installed.filter(([, { resolved }]) => resolved !== undefined)).toEqual([]);
});
