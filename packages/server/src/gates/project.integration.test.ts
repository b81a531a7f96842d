import { type ErrorCode, SlipwayError } from "@slipway/contract";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { createGates } from "./gates.ts";
import { app, type GateSite, openGateSite } from "./testing.ts";

// npm takes seconds to start, and more beside other tests.

let site: GateSite;
beforeAll(async () => {
  site = await openGateSite(app);
});
afterAll(async () => await site[Symbol.asyncDispose]());

const script = (scripts: Record<string, string>) => ({
  "package.json": JSON.stringify({ name: "shop", type: "module", scripts }),
});

test("a candidate that builds and whose tests pass goes through, and nothing is left of it", async () => {
  const commit = await site.candidate({ "README.md": "# Shop\n" });
  expect(await site.judge("build", commit)).toEqual({ verdict: "passed", findings: [] });
  expect(await site.judge("tests", commit)).toEqual({ verdict: "passed", findings: [] });
  expect(await site.provider.list()).toEqual([]);
});

test("a build that fails is told with its end and its place", async () => {
  const commit = await site.candidate({ "server.js": "const a = ;\n" });
  const { verdict, findings } = await site.judge("build", commit);
  expect(verdict).toBe("failed");
  expect(findings).toMatchObject([{ gate: "build", file: "server.js", line: 1 }]);
  expect(findings[0]?.text).toMatch(/^`npm run build` ended with exit code 1\.[\s\S]*SyntaxError/);
});

test("a test that fails is told with what it said", async () => {
  const commit = await site.candidate({ "items.js": 'export const items = ["bread"];\n' });
  const { verdict, findings } = await site.judge("tests", commit);
  expect(verdict).toBe("failed");
  expect(findings[0]?.text).toContain("nothing is in the shop at first");
});

test("a project with nothing to build passes, and one whose tests were taken out does not", async () => {
  const commit = await site.candidate(script({ start: "node server.js" }));
  expect(await site.judge("build", commit)).toEqual({ verdict: "passed", findings: [] });
  const { verdict, findings } = await site.judge("tests", commit);
  expect(verdict).toBe("failed");
  expect(findings).toMatchObject([{ file: "package.json", text: expect.stringContaining("test script") }]);
});

test("tests that were deleted or made weaker are found in git, before anything runs", async () => {
  const weaker = app["server.test.js"]?.replace(/^.*deepEqual\(items, \[\]\).*$/m, "");
  const commit = await site.candidate({ "server.test.js": weaker ?? "" });
  expect(await site.judge("tests", commit)).toMatchObject({
    verdict: "failed",
    findings: [{ file: "server.test.js", text: expect.stringContaining("has lost 1 tests") }],
  });
  const without = await site.candidate({ "server.test.js": null });
  expect(await site.judge("tests", without)).toMatchObject({
    verdict: "failed",
    findings: [{ text: expect.stringContaining("was deleted") }],
  });
});

test("tests that were switched off are found, whatever the edit", async () => {
  const scripts = { build: "node --check server.js", start: "node server.js" };
  const own = "node --test server.test.js";
  const { "server.test.js": tests = "" } = app;
  const tautology = tests.replace("assert.deepEqual(items, [])", "assert.equal(1, 1)");
  const judged = async (files: Record<string, string | null>, base = site.main) =>
    (await site.judge("tests", await site.candidate(files, base), { base })).findings.map(({ text }) => text);
  expect(await judged(script({ ...scripts, test: `${own} || node -e 0` }))).toEqual([
    expect.stringContaining(`Put it back: "${own}"`),
  ]);
  expect(await judged({ "server.test.js": null, "server.off.js": tests })).toEqual([
    expect.stringContaining("was moved to server.off.js, where it runs no more"),
  ]);
  expect(await judged({ "server.test.js": tautology })).toEqual([expect.stringContaining("asserts less than before")]);

  const led = await site.candidate(script({ ...scripts, test: "npm run unit", unit: own }));
  expect(await judged(script({ ...scripts, test: "npm run unit", unit: "true" }), led)).toEqual([
    expect.stringContaining("The unit script of package.json runs no tests any more"),
  ]);
  const python = {
    "package.json": null,
    "requirements.txt": "pytest\n",
    "test_shop.py": "def test_a():\n  assert f()\n",
  };
  const snake = await site.candidate(python);
  for (const files of [script({ test: "true" }), { "requirements.txt": null }]) {
    expect(await judged(files, snake)).toEqual([expect.stringContaining("Tests ran by `.venv/bin/python -m pytest`")]);
  }
});

test("tests that main has and the candidate's merge has not are found when it is tested on main", async () => {
  const main = await site.candidate({ "more.test.js": 'import test from "node:test";\ntest("more", () => {});\n' });
  const ours = await site.candidate({ "more.test.js": null, "README.md": "# Ours\n" }, main);
  expect(await site.judge("main-test", ours, { base: main })).toMatchObject({
    verdict: "failed",
    findings: [{ gate: "main-test", file: "more.test.js", text: expect.stringContaining("was deleted") }],
  });
});

test("tests that another candidate has brought to main since are not missed", async () => {
  const old = await site.candidate({ "README.md": "# Older\n" });
  const repository = await site.parts.repositories.of(site.build.id);
  const newer = await site.candidate({ "more.test.js": 'import test from "node:test";\ntest("more", () => {});\n' });
  const parts = { ...site.parts, repositories: { of: async () => ({ ...repository, main: async () => newer }) } };

  const { verdict } = await createGates(parts).run(site.build, site.work("tests", old), new AbortController().signal);
  expect(verdict).toBe("passed");
});

test("a build that puts its own npm in place runs no tests by it", async () => {
  const forge = "printf '#!/bin/sh\\n' > /usr/local/bin/npm && chmod +x /usr/local/bin/npm";
  const commit = await site.candidate({
    ...script({ build: forge, test: "node --test server.test.js", start: "node server.js" }),
    "items.js": 'export const items = ["bread"];\n',
  });
  const { verdict, findings } = await site.judge("main-test", commit, { base: site.main });
  expect(verdict).toBe("failed");
  expect(findings[0]?.text).toContain("nothing is in the shop at first");
});

test("a gate that nobody knows, and a commit that is not there, are errors and no verdicts", async () => {
  expect(await site.judge("beauty", site.main)).toMatchObject({ verdict: "error" });
  expect(await site.judge("tests", "0".repeat(40))).toMatchObject({ verdict: "error" });
});

test("what passes by itself is told as such, and what a candidate may have broken is not", async () => {
  const { signal } = new AbortController();
  const judge = async (code: ErrorCode) => {
    const open = () => Promise.reject(new SlipwayError(code, "no luck"));
    return await createGates({ ...site.parts, workspaces: { open } }).run(
      site.build,
      site.work("build", site.main),
      signal,
    );
  };
  const findings = [{ gate: "build", text: "no luck" }];
  for (const code of ["out_of_disk", "provider_unavailable"] as const) {
    expect(await judge(code)).toEqual({ verdict: "error", findings, trouble: "no luck" });
  }
  expect(await judge("sandbox_ended")).toEqual({ verdict: "error", findings });
  expect(await judge("install_failed")).toEqual({ verdict: "failed", findings });
});

test("an end that was asked for ends the sandbox at once", async () => {
  const commit = await site.candidate(script({ build: "node -e 'setTimeout(() => {}, 600000)'" }));
  const controller = new AbortController();
  const ending = site.gates.run(site.build, site.work("build", commit), controller.signal);
  await vi.waitFor(async () => {
    const [info] = await site.provider.list();
    const execs = info === undefined ? [] : await (await site.provider.get(info.id)).execs();
    expect(execs.some(({ argv }) => argv.includes("build"))).toBe(true);
  });
  controller.abort();
  await expect(ending).rejects.toThrow();
  expect(await site.provider.list()).toEqual([]);
});

test("a run that is begun anew ends what a killed server has left of it, and nothing else", async () => {
  const left = await site.provider.create({ labels: { "gate-run": `${site.build.id}/900` } });
  const other = await site.provider.create({ labels: { "gate-run": `${site.build.id}/901` } });
  const commit = await site.candidate({ "README.md": "# Again\n" });
  expect(await site.judge("build", commit, { run: 900 })).toMatchObject({ verdict: "passed" });
  expect((await site.provider.list()).map(({ id }) => id)).toEqual([other.id]);
  await expect(left.info()).rejects.toThrow();
  await other.destroy();
});
