import { type ErrorCode, SlipwayError } from "@slipway/contract";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { openWorld, type WorldWith } from "../../testing/world.ts";
import { createGates } from "./gates.ts";
import { app } from "./testing.ts";

// npm takes seconds to start, and more beside other tests.

let site: WorldWith<"gates">;
beforeAll(async () => {
  site = await openWorld({ sandboxes: "local", repository: app, gates: {} });
});
afterAll(async () => await site[Symbol.asyncDispose]());

const script = (scripts: Record<string, string>) => ({
  "package.json": JSON.stringify({ name: "shop", type: "module", scripts }),
});

test("a candidate that builds and whose tests pass goes through, and nothing is left of it", async () => {
  const commit = await site.candidate({ "README.md": "# Shop\n" });
  expect(await site.judge("build", commit)).toMatchObject({ verdict: "passed", findings: [] });
  expect(await site.judge("tests", commit)).toMatchObject({ verdict: "passed", findings: [] });
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
  expect(await site.judge("build", commit)).toMatchObject({ verdict: "passed", findings: [] });
  const { verdict, findings } = await site.judge("tests", commit);
  expect(verdict).toBe("failed");
  expect(findings).toMatchObject([{ file: "server.test.js", text: expect.stringContaining("did not run now") }]);
});

const own = "node --test server.test.js";
const { "server.test.js": tests = "" } = app;
const first = '"nothing is in the shop at first"';

test.each<[string, Record<string, string | null>, RegExp]>([
  [
    "a test is taken out",
    { "server.test.js": tests.replace(/^test\(.*\[\]\)\);$/m, "") },
    /^server\.test\.js: "nothing[^,]* did not run/,
  ],
  [
    "they are where none is looked for",
    { ...script({ test: "node --test" }), "server.test.js": null, "off.js": tests },
    notRun(),
  ],
  [
    "a test is skipped",
    { "server.test.js": tests.replace("test(", "test.skip(") },
    /"nothing[^,]*" passed before and is skipped now/,
  ],
  ["the code ends the process", { "items.js": "export const items = [];\nprocess.exit();\n" }, notRun()],
  ["the script runs nothing", script({ test: "true" }), notRun()],
  [
    "the script takes every end for a success",
    { ...script({ test: `${own} || true` }), "items.js": 'export const items = ["bread"];\n' },
    /^server\.test\.js: "nothing[^,]*".* failed, whatever/,
  ],
  ["another shell runs scripts", { ".npmrc": "script-shell=/bin/true\n" }, notRun()],
  [
    "tests assert nothing",
    { "server.test.js": tests.replace("assert.deepEqual(items, [])", "assert.equal(1, 1)") },
    /1 of its tests had assertions/,
  ],
])("of tests that were there before, none is missed: %s", async (_, files, why) => {
  const { verdict, findings } = await site.judge("tests", await site.candidate(files), { base: site.main });
  expect(verdict).toBe("failed");
  expect(findings[0]?.text).toMatch(why);
});

function notRun() {
  return /^server\.test\.js: "nothing[^,]*", "what[^,]*" passed before and did not run now/;
}

test("a test that the plan says will change, or that another has the place of, is shown and not refused", async () => {
  const commit = await site.candidate({ "server.test.js": tests.replace(first, '"it begins with nothing"') });
  const { verdict, findings } = await site.judge("tests", commit);
  expect(verdict).toBe("passed");
  expect(findings.map(({ text }) => text)).toEqual([
    `server.test.js: ${first} is gone; others passed in its place.`,
    "Existing tests are changed: server.test.js (changed).",
  ]);
  const build = await site.demand({ shop: { tasks: ["own"], checks: [] } });
  const [plan] = await site.store.builds.records(build.id, "plans");
  if (plan === undefined) throw new Error("there is no plan");
  const expectedFiles = ["server.test.js"];
  const tasks = plan.tasks.map((task) => ({ ...task, id: `${task.id}-again`, expectedFiles }));
  await site.apply(build, { records: { plans: [{ ...plan, round: 2, tasks }] } });
  const without = await site.candidate({ "server.test.js": tests.replace(/^test\(.*\[\]\)\);$/m, "") });
  const planned = await site.judge("tests", without, { task: "own-again" }, build);
  expect(planned).toMatchObject({
    verdict: "passed",
    findings: [{ text: expect.stringContaining("the plan says") }, { text: expect.stringContaining("are changed") }],
  });
});

test("where nothing reports which tests ran, the record says that the exit code has told", async () => {
  const commit = await site.candidate(script({ test: "node -e 0" }));
  expect(await site.judge("tests", commit, { base: commit })).toMatchObject({
    verdict: "passed",
    findings: [{ text: expect.stringMatching(/^Only the exit code says/) }],
  });
});

test("main's tests run once for all candidates on it, and not again for what has passed", async () => {
  const opened: string[] = [];
  const open: typeof site.parts.workspaces.open = (build, commit, options) => {
    opened.push(commit);
    return site.parts.workspaces.open(build, commit, options);
  };
  const gates = createGates({ ...site.parts, workspaces: { open } });
  const judge = (commit: string, base: string) =>
    gates.run(site.build, site.work("tests", commit, { base }), new AbortController().signal);
  const [one, other] = [await site.candidate({ "a.md": "a" }), await site.candidate({ "b.md": "b" })];
  expect(await Promise.all([judge(one, site.main), judge(other, site.main)])).toMatchObject([
    { verdict: "passed" },
    { verdict: "passed" },
  ]);
  expect(opened.toSorted()).toEqual([one, other, site.main].toSorted());
  const next = await site.candidate({ "server.test.js": null, ...script({ test: "true" }) }, one);
  expect(await judge(next, one)).toMatchObject({ verdict: "failed" });
  expect(opened.slice(3)).toEqual([next]);
});

test("tests that main has and the candidate's merge has not are found when it is tested on main", async () => {
  const more = { "more.test.js": 'import test from "node:test";\ntest("more", () => {});\n' };
  const main = await site.candidate({ ...more, ...script({ test: "node --test", start: "node server.js" }) });
  const ours = await site.candidate({ "more.test.js": null, "README.md": "# Ours\n" }, main);
  expect(await site.judge("main-test", ours, { base: main })).toMatchObject({
    verdict: "failed",
    findings: [{ gate: "main-test", file: "more.test.js", text: expect.stringContaining("did not run now") }],
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
    expect(await judge(code)).toMatchObject({ verdict: "error", findings, trouble: "no luck" });
  }
  for (const [code, verdict] of [
    ["sandbox_ended", "error"],
    ["install_failed", "failed"],
  ] as const) {
    const end = await judge(code);
    expect(end).toMatchObject({ verdict, findings });
    expect(end).not.toHaveProperty("trouble");
  }
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
