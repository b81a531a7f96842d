// Runs every static check, and lists the failed ones at the end.
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const checks = ["check:types", "check:lint", "check:layers", "check:unused"];

const failed = checks.filter((check) => {
  console.log(`\n== ${check}`);
  return spawnSync(process.execPath, ["--run", check], { cwd: root, stdio: "inherit" }).status !== 0;
});
console.log(`\n${checks.length - failed.length} of ${checks.length} checks passed`);
if (failed.length > 0) console.log(`failed: ${failed.join(", ")}`);
process.exitCode = failed.length === 0 ? 0 : 1;
