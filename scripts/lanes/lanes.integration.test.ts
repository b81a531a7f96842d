import { mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, expect, it } from "vitest";
import { judge, runVitest, runVitestAgain } from "./lanes.ts";

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "lanes-"));
  await symlink(fileURLToPath(new URL("../../node_modules", import.meta.url)), join(directory, "node_modules"));
});
afterEach(() => rm(directory, { recursive: true }));

/** The body of a test that fails until it was run so often. */
const passesOnRun = (number: number) => `
  appendFileSync("runs", "x");
  expect(readFileSync("runs", "utf8").length, "too early").toBeGreaterThanOrEqual(${number});`;

it("a test that passes when it runs again alone is flaky, and both outputs are kept", async () => {
  const verdict = await judgeRun(
    `describe("a (b)", () => { it("is c > d?", () => {${passesOnRun(2)}}); it("e", () => {}); });`,
  );
  expect(verdict).toMatchObject({ passed: 2, failed: 0, flaky: [{ file: "some.test.ts", name: "a (b) > is c > d?" }] });
  expect(await readFile(join(directory, ".reports/first.log"), "utf8")).toContain("too early");
  expect(await readFile(join(directory, ".reports/again-1.log"), "utf8")).toContain("1 passed");
});

it("a test that fails again has failed", async () => {
  const verdict = await judgeRun(`it("a", () => {${passesOnRun(3)}}); it("b", () => {});`);
  expect(verdict).toMatchObject({ passed: 1, failed: 1, flaky: [], failures: [{ name: "a", errors: [/too early/] }] });
});

it("a name that the second run does not have proves nothing", async () => {
  const verdict = await judgeRun(`it("at " + process.pid, () => {${passesOnRun(2)}});`);
  expect(verdict).toMatchObject({ passed: 0, failed: 1, flaky: [] });
});

it.each([
  { what: "more than three failed tests", code: `it.each([1, 2, 3, 4])("%s", () => {${passesOnRun(9)}});`, failed: 4 },
  { what: "a hook before the tests", code: `beforeAll(() => {${passesOnRun(2)}}); it("a", () => {});`, failed: 2 },
  { what: "a hook after the tests", code: `afterAll(() => {${passesOnRun(2)}}); it("a", () => {});`, failed: 1 },
  { what: "a file that does not load", code: passesOnRun(2), failed: 1 },
  { what: "a file without tests", code: "", failed: 1 },
  { what: "a worker that dies", code: `it("a", () => process.kill(process.pid, "SIGKILL"));`, failed: 1 },
  { what: "a skipped test", code: `it.skip("a", () => {});`, failed: 1 },
  { what: "an error outside of the tests", code: `it("a", () => void Promise.reject(new Error("lost")));`, failed: 1 },
])("$what is never tried again", async ({ code, failed }) => {
  const verdict = await judgeRun(code);
  expect(verdict.failed).toBeGreaterThanOrEqual(failed);
  expect(verdict.flaky).toEqual([]);
  await expect(readFile(join(directory, ".reports/again-1.log"))).rejects.toThrow("ENOENT");
});

it.each([
  ["spawn", `spawn("true");`],
  ["execFile", `await promisify(execFile)("true").catch(() => undefined);`],
  ["spawnSync", `try { spawnSync("true"); } catch {}`],
  ["execSync", `execSync("true");`],
])("a unit test that starts a process by %s fails, whatever it catches", async (name, code) => {
  const setUp = fileURLToPath(new URL("no-processes.ts", import.meta.url));
  await writeFile(join(directory, "vitest.config.mjs"), `export default { test: { setupFiles: ["${setUp}"] } }`);
  const verdict = await judgeRun(`import { ${name} } from "node:child_process";
    import { promisify } from "node:util";
    it("a", async () => { ${code} }); it("b", () => {});`);
  expect(verdict).toMatchObject({ passed: 1, failed: 1, failures: [{ name: "a" }] });
  expect(verdict.failures[0]?.errors.join()).toContain("started ");
});

const print = () => {};

async function judgeRun(code: string) {
  const imports = `import { appendFileSync, readFileSync } from "node:fs";
    import { afterAll, beforeAll, describe, expect, it } from "vitest";`;
  await writeFile(join(directory, "some.test.ts"), `${imports}\n${code}`);
  const first = await runVitest({ name: "first", print }, [], directory);
  return judge([first], (test, number) => runVitestAgain({ name: `again-${number}`, print }, [], test, directory));
}
