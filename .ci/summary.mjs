// `node .ci/summary.mjs <exit of npm test> <exit of npm run check>` counts what `npm test` left in .reports. A test run that broke
// off and failed checks count as a failure each.
import { existsSync, readFileSync } from "node:fs";

const [testsExit, checksExit] = process.argv.slice(2).map(Number);
const path = ".reports/result.json";
let { passed, failed } = existsSync(path) ? JSON.parse(readFileSync(path, "utf8")) : { passed: 0, failed: 0 };
if (passed === 0) fail("no test passed");
else if (testsExit !== 0 && failed === 0) fail(`the test run ended with exit code ${testsExit}`);
if (checksExit !== 0) fail("npm run check failed");

console.log(`${passed} passed, ${failed} failed`);
process.exitCode = failed === 0 ? 0 : 1;

function fail(reason) {
  console.log(reason);
  failed += 1;
}
