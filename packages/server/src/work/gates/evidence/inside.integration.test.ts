import { execFile } from "node:child_process";
import { mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { evidenceEnvironment } from "./collect.ts";
import { parseReport } from "./reports.ts";

const inside = join(import.meta.dirname, "inside");
let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "slipway-evidence-"));
  await mkdir(join(directory, "reports"));
});
afterEach(() => rm(directory, { recursive: true, force: true }));

async function put(path: string, content: string): Promise<string> {
  const target = join(directory, path);
  await mkdir(dirname(target), { recursive: true });
  await writeFile(target, content);
  return target;
}

/** Runs Node in the directory as a gate does, and says what was reported. */
async function node(argv: readonly string[], manifest = "") {
  const env = {
    PATH: process.env["PATH"],
    CI: "1",
    ...evidenceEnvironment({ inside, directory: join(directory, "reports"), manifest }),
  };
  const { code, stdout } = await new Promise<{ code: number | string | null; stdout: string }>((resolve) => {
    execFile(process.execPath, argv, { cwd: directory, env }, (error, stdout) =>
      resolve({ code: error?.code ?? 0, stdout }),
    );
  });
  const names = await readdir(join(directory, "reports"));
  const reports = await Promise.all(
    names.map(async (name) =>
      parseReport(name.split(".", 1)[0] ?? "", await readFile(join(directory, "reports", name), "utf8")),
    ),
  );
  return {
    code,
    stdout,
    names,
    told: reports
      .flat()
      .map(({ name, outcome }) => `${name}: ${outcome}`)
      .sort(),
  };
}

const ofNode = `import test, { describe, it } from "node:test";
describe("suite", () => {
  it("one", () => {});
  it("two", { skip: true }, () => {});
  it.todo("three");
});
test("outer", async (t) => { await t.test("inner", () => {}); });
`;
const oneSuite = [
  ...[
    "outer > inner: passed",
    "outer: passed",
    "suite > one: passed",
    "suite > three: skipped",
    "suite > two: skipped",
  ],
];

test("node:test reports each test, run by files or by a program, beside what people read", async () => {
  await put("a.test.mjs", ofNode);
  const byFiles = await node(["--test"]);
  expect(byFiles).toMatchObject({ code: 0, told: oneSuite });
  expect(byFiles.stdout).toContain("✔ one");
  const tests = await put("tests.mjs", 'await import("./a.test.mjs");');
  expect((await node([tests])).told).toEqual([...oneSuite, ...oneSuite].sort());
});

test("node:test reports by a project's own choice of a reporter, too", async () => {
  await put("a.test.mjs", ofNode);
  const manifest = '{"scripts":{"test":"node --test --test-reporter=dot"}}';
  expect(await node(["--test", "--test-reporter=dot"], manifest)).toMatchObject({ code: 0, told: oneSuite });
  const both = ["--test-reporter=dot", "--test-reporter-destination=stdout"];
  const other = `{"scripts":{"test":"node --test ${both.join(" ")}"}}`;
  expect(await node(["--test", ...both], other)).toMatchObject({ code: 0 });
});

test("a process that ends in the middle reports nothing of what it did not run, whatever its exit code", async () => {
  await put("a.test.mjs", `${ofNode}test("exits", () => process.exit());\ntest("late", () => {});\n`);
  const byFiles = await node(["--test"]);
  expect(byFiles.code).toBe(0);
  expect(byFiles.told).not.toContain("late: passed");
});

test("a test of node:test that is expected to fail counts as left out", async () => {
  const body = "() => { throw new Error('broken'); }";
  await put("a.test.mjs", `import test from "node:test";\ntest("one", { expectFailure: true }, ${body});\n`);
  expect((await node(["--test"])).told).toEqual(["one: skipped"]);
});

test("Vitest reports each test", async () => {
  const vitest = join(dirname(createRequire(import.meta.url).resolve("vitest/package.json")), "vitest.mjs");
  await symlink(join(vitest, "../.."), join(directory, "node_modules"));
  await put(
    "a.test.mjs",
    `import { describe, test } from "vitest";
describe("suite", () => {
  test("one", () => {});
  test.skip("two", () => {});
  test.todo("three");
});
`,
  );
  const { code, stdout, told } = await node([vitest, "--root", directory]);
  expect([code, told]).toEqual([0, ["suite > one: passed", "suite > three: skipped", "suite > two: skipped"]]);
  expect(stdout).toContain("1 passed");
});

test.each([
  ["jest/bin/jest.js", ["src"], ["src", "--json", "--outputFile=R/jest.P.json"]],
  ["react-scripts/scripts/test.js", [], ["--json", "--outputFile=R/jest.P.json"]],
  [
    "mocha/bin/mocha.js",
    ["a", "--", "b"],
    ["a", "--reporter=json", "--reporter-option=output=R/mocha.P.json", "--", "b"],
  ],
  ["@playwright/test/cli.js", ["test"], ["test", "--reporter=list,json"]],
  ["playwright/cli.js", ["install"], ["install"]],
  ["vitest/vitest.mjs", ["list"], ["list"]],
  ["other/bin/jest.js", ["src"], ["src"]],
])("%s with %j is run with %j", async (path, argv, given) => {
  const say = path.endsWith("mjs") ? 'import process from "node:process"; ' : "";
  const program = await put(
    `packages/${path}`,
    `${say}console.log(JSON.stringify({ pid: process.pid, argv: process.argv.slice(2) }));`,
  );
  const link = join(directory, "run");
  await symlink(program, link);
  const { stdout } = await node([link, ...argv]);
  const said = JSON.parse(stdout) as { pid: number; argv: string[] };
  const plain = said.argv.map((one) => one.replace(join(directory, "reports"), "R").replace(`.${said.pid}.`, ".P."));
  expect(plain).toEqual(given);
});
