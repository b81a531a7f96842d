import { execFile } from "node:child_process";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, it } from "vitest";

const summary = fileURLToPath(new URL("../.ci/summary.mjs", import.meta.url));
const passing = { passed: 5, failed: 0 };

it.each([
  { what: "all passed", result: passing, line: "5 passed, 0 failed", ok: true },
  { what: "a failed test", result: { ...passing, failed: 1 }, exits: [1, 0], line: "5 passed, 1 failed" },
  { what: "a run that broke off", result: passing, exits: [1, 0], line: "5 passed, 1 failed" },
  { what: "a failed check", result: passing, exits: [0, 1], line: "5 passed, 1 failed" },
  { what: "no result", result: undefined, exits: [1, 0], line: "0 passed, 1 failed" },
  { what: "no test at all", result: { passed: 0, failed: 0 }, line: "0 passed, 1 failed" },
])("$what: $line", async ({ result, exits = [0, 0], line, ok = false }) => {
  const directory = await mkdtemp(join(tmpdir(), "summary-"));
  await mkdir(join(directory, ".reports"));
  if (result !== undefined) await writeFile(join(directory, ".reports/result.json"), JSON.stringify(result));
  const run = promisify(execFile)(process.execPath, [summary, ...exits.map(String)], { cwd: directory });
  const { stdout, code = 0 } = await run.catch((error) => error);
  await rm(directory, { recursive: true });
  expect(stdout.trimEnd().split("\n").at(-1)).toBe(line);
  expect(code).toBe(ok ? 0 : 1);
});
