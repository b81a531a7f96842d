// Writes package-lock.json anew from the manifests, with one npm version, where there is neither node_modules nor a lock:
// beside either npm leaves out other platforms' optional packages, and `npm ci` then refuses the lock.
import { spawnSync } from "node:child_process";
import { copyFileSync, cpSync, globSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const directory = mkdtempSync(join(tmpdir(), "lock-"));
for (const path of globSync(["package.json", ".npmrc", "packages/*/package.json"], { cwd: root })) {
  cpSync(join(root, path), join(directory, path));
}
const install = ["-y", "npm@11.6.2", "install", "--package-lock-only", "--loglevel=error"];
const { status } = spawnSync("npx", install, { cwd: directory, stdio: "inherit" });
if (status === 0) copyFileSync(join(directory, "package-lock.json"), join(root, "package-lock.json"));
rmSync(directory, { recursive: true });
process.exitCode = status === 0 ? 0 : 1;
