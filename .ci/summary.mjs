// `node .ci/summary.mjs <exit of npm test> <exit of npm run check>` sums the Vitest reports in .reports.
// A skipped test, a test run that broke off and a failed check each count as a failure.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

const [testsExit, checksExit] = process.argv.slice(2).map(Number);
const directory = ".reports";
let passed = 0;
let failed = 0;

for (const name of existsSync(directory) ? readdirSync(directory) : []) {
  const report = read(name);
  const skipped = report.numPendingTests + report.numTodoTests;
  passed += report.numPassedTests;
  failed += report.numFailedTests + skipped;
  console.log(`${name}: ${report.numPassedTests} passed, ${report.numFailedTests} failed, ${skipped} skipped`);
}
if (passed === 0) fail("no test passed");
if (testsExit !== 0 && failed === 0) fail(`the test run ended with exit code ${testsExit}`);
if (checksExit !== 0) fail("npm run check failed");

console.log(`${passed} passed, ${failed} failed`);
process.exitCode = failed === 0 ? 0 : 1;

function read(name) {
  try {
    return JSON.parse(readFileSync(join(directory, name), "utf8"));
  } catch (error) {
    fail(`${name} is not a report: ${error.message}`);
    return { numPassedTests: 0, numFailedTests: 0, numPendingTests: 0, numTodoTests: 0 };
  }
}

function fail(reason) {
  console.log(reason);
  failed += 1;
}
