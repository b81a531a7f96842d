// `node .ci/summary.mjs <exit of npm test> <exit of npm run check>` sums the Vitest reports in .reports.
// A skipped test, a test run that broke off and a failed check each count as a failure. What failed is told last, so
// that the end of a long output is enough to know it.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join, relative } from "node:path";

const [testsExit, checksExit] = process.argv.slice(2).map(Number);
const directory = ".reports";
let passed = 0;
let failed = 0;

for (const name of existsSync(directory) ? readdirSync(directory) : []) {
  const report = read(name);
  const skipped = report.numPendingTests + report.numTodoTests;
  passed += report.numPassedTests;
  failed += report.numFailedTests + skipped;
  for (const file of report.testResults ?? []) tellFailures(file);
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

function tellFailures(file) {
  for (const test of file.assertionResults.filter(({ status }) => status !== "passed")) {
    console.log(`\n${test.status}: ${relative(".", file.name)} > ${test.fullName}`);
    for (const message of test.failureMessages) console.log(message.slice(0, 3000));
  }
  if (file.status === "failed" && file.message)
    console.log(`\n${relative(".", file.name)}: ${file.message.slice(0, 3000)}`);
}

function fail(reason) {
  console.log(reason);
  failed += 1;
}
