// Writes each package-lock.json anew from the manifests, with one npm version, where there is neither node_modules nor a lock:
// beside either npm leaves out other platforms' optional packages, and `npm ci` then refuses the lock.
// `node scripts/lock.mjs [directory]`: of one directory only.
import { spawnSync } from "node:child_process";
import { copyFileSync, cpSync, globSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const directories = [".", ...globSync("scripts/test-agents/*", { cwd: root })];
const [only] = process.argv.slice(2);
for (const directory of only === undefined ? directories : [only]) {
  if (!writeLock(join(root, directory))) process.exitCode = 1;
}

function writeLock(directory) {
  const place = mkdtempSync(join(tmpdir(), "lock-"));
  cpSync(join(root, ".npmrc"), join(place, ".npmrc"));
  for (const path of globSync(["package.json", "packages/*/package.json"], { cwd: directory })) {
    cpSync(join(directory, path), join(place, path));
  }
  const install = ["-y", "npm@11.6.2", "install", "--package-lock-only", "--loglevel=error"];
  const { status } = spawnSync("npx", install, { cwd: place, stdio: "inherit" });
  if (status === 0) copyFileSync(join(place, "package-lock.json"), join(directory, "package-lock.json"));
  rmSync(place, { recursive: true });
  return status === 0;
}
