import { execFile } from "node:child_process";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, it } from "vitest";

const summary = fileURLToPath(new URL("../.ci/summary.mjs", import.meta.url));
const passing = { numPassedTests: 5, numFailedTests: 0, numPendingTests: 0, numTodoTests: 0 };

it.each([
  { what: "all passed, in both runs", reports: [passing, passing], line: "10 passed, 0 failed", ok: true },
  { what: "a failed test", reports: [{ ...passing, numFailedTests: 1 }], exits: [1, 0], line: "5 passed, 1 failed" },
  { what: "a skipped test", reports: [{ ...passing, numPendingTests: 1 }], line: "5 passed, 1 failed" },
  { what: "a test to do", reports: [{ ...passing, numTodoTests: 2 }], line: "5 passed, 2 failed" },
  { what: "a run that broke off", reports: [passing], exits: [1, 0], line: "5 passed, 1 failed" },
  { what: "a failed check", reports: [passing], exits: [0, 1], line: "5 passed, 1 failed" },
  { what: "a report cut short", reports: [passing, "{"], line: "5 passed, 1 failed" },
  { what: "no report", reports: [], line: "0 passed, 1 failed" },
])("$what: $line", async ({ reports, exits = [0, 0], line, ok = false }) => {
  const { lines, code } = await summarise(reports, exits);
  expect(lines.at(-1)).toBe(line);
  expect(code).toBe(ok ? 0 : 1);
});

it("tells at the end which tests failed, and why", async () => {
  const failed = { status: "failed", fullName: "a lock is held", failureMessages: ["Error: it was not"] };
  const passed = { status: "passed", fullName: "a lock is let go", failureMessages: [] };
  const file = { name: "/elsewhere/lock.test.ts", status: "failed", message: "", assertionResults: [passed, failed] };
  const { lines } = await summarise([{ ...passing, numFailedTests: 1, testResults: [file] }], [1, 0]);
  expect(lines.join("\n")).toMatch(/failed: .*lock.test.ts > a lock is held\nError: it was not/);
  expect(lines.join("\n")).not.toContain("let go");
});

it("tells of a file that could not be read", async () => {
  const file = { name: "/elsewhere/lock.test.ts", status: "failed", message: "no such import", assertionResults: [] };
  const { lines } = await summarise([{ ...passing, testResults: [file] }], [1, 0]);
  expect(lines.join("\n")).toMatch(/lock.test.ts: no such import/);
});

async function summarise(reports: unknown[], exits: number[]) {
  const directory = await mkdtemp(join(tmpdir(), "summary-"));
  await mkdir(join(directory, ".reports"));
  for (const [index, report] of reports.entries()) {
    const text = typeof report === "string" ? report : JSON.stringify(report);
    await writeFile(join(directory, ".reports", `${index}.json`), text);
  }
  const run = promisify(execFile)(process.execPath, [summary, ...exits.map(String)], { cwd: directory });
  const { stdout, code = 0 } = await run.catch((error) => error);
  await rm(directory, { recursive: true });
  return { lines: stdout.trimEnd().split("\n"), code };
}
