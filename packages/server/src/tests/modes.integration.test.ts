import { execFile } from "node:child_process";
import { chmod, lstat, mkdir, mkdtemp, readdir, readFile, rename, rm, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import type { BuildId, Check, Surface } from "@slipway/contract";
import type { ScriptedProgram } from "@slipway/gateway/scripted";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { localUser } from "../faces/principal.ts";
import { criteria } from "../simulated/generated.ts";
import { commit, git, put, stateOf } from "../testing/git.ts";
import { type ScriptedTask, scriptedApp, shows } from "../testing/scripted-app.ts";
import { openWorld, type WorldWith } from "../testing/world.ts";

vi.setConfig({ testTimeout: 600_000, hookTimeout: 600_000 });

const run = promisify(execFile);
let scratch: string;
beforeAll(async () => {
  scratch = await mkdtemp("/var/tmp/slipway-modes-");
});
afterAll(() => rm(scratch, { recursive: true, force: true }));

const server = `const { createServer } = require("node:http");
const { total } = require("./lib/total");
createServer((request, response) => {
  const { pathname } = new URL(request.url, "http://localhost");
  if (pathname.startsWith("/total/")) return response.end("total " + total(pathname.split("/").slice(2).map(Number)));
  response.end("prices");
}).listen(process.env.PORT);
`;
const total = "exports.total = (prices) => prices.reduce((sum, price) => sum + price, 0);\n";
const tests = `const assert = require("node:assert");
const { test } = require("node:test");
const { total } = require("../lib/total");
test("prices add up", () => assert.equal(total([1, 2, 4]), 7));
`;

/** Somebody's small project, with a past of its own. Whatever of its hooks runs leaves a trace. */
async function someonesProject(name: string, files: Readonly<Record<string, string>> = {}) {
  const directory = join(scratch, name);
  const trace = join(scratch, `${name}.trace`);
  await mkdir(directory);
  await git(directory, "init", "-q", "-b", "trunk");
  await commit(directory, "Add prices", { "README.md": "# Prices\n", "lib/total.js": total });
  const manifest = { name: "prices", version: "1.4.0", scripts: { dev: "node server.js", test: "node --test test/" } };
  await commit(directory, "Serve them", {
    "package.json": JSON.stringify(manifest),
    "server.js": server,
    "test/total.test.js": tests,
    ".gitignore": "*.log\n",
    ...files,
  });
  await git(directory, "tag", "v1.4.0");
  await put(directory, { "notes.txt": "not for git yet\n", "debug.log": "ignored\n" });
  for (const hook of ["pre-commit", "post-checkout", "post-index-change", "reference-transaction", "pre-push"]) {
    const path = join(directory, ".git/hooks", hook);
    await writeFile(path, `#!/bin/sh\necho ${hook} >> ${trace}\n`);
    await chmod(path, 0o755);
  }
  return { directory, trace, before: await stateOf(directory) };
}

/** How the project's own tests end, without Slipway. */
async function ownTests(directory: string): Promise<number> {
  return await run(process.execPath, ["--test"], { cwd: directory, env: {} }).then(
    () => 0,
    ({ code }) => code,
  );
}

/** Main's files, in a directory of their own. */
async function mainOf(builds: WorldWith<"server">, build: BuildId): Promise<string> {
  const directory = join(scratch, build);
  await mkdir(directory);
  const repository = await builds.repository(build);
  for (const [path, content] of await repository.read(await repository.main(), () => true)) {
    await put(directory, { [path]: content.toString("utf8") });
  }
  return directory;
}

/** Every criterion and workflow is about the one thing that is asked for. */
function appThatShows(path: string, text: string): { readonly surface: Surface; readonly checks: readonly Check[] } {
  return {
    surface: {
      pages: [{ id: "page", path, purpose: text }],
      controls: [],
      messages: [{ id: "text", text, one: null, when: "Always" }],
      routes: [],
    },
    checks: [...criteria, "pack", "start-over"].map((proves) => shows(proves, "page", "text")),
  };
}

async function expectSucceeded(builds: WorldWith<"server">, build: BuildId) {
  const view = await builds.ended(build, 500_000);
  const told = (await builds.events(build)).map(({ type, data }) => `${type} ${JSON.stringify(data).slice(0, 300)}`);
  expect(view.status, [...told.slice(-15), ...builds.warnings].join("\n")).toBe("succeeded");
  const queue = await builds.server.face.mergeQueue(localUser, build);
  return { view, queue };
}

describe("a repository that is somebody else's", () => {
  const tax: ScriptedTask = {
    id: "tax",
    build: () => [
      { write: "lib/tax.js", content: "exports.withTax = (sum) => Math.round(sum * 1.2);\n" },
      {
        write: "test/tax.test.js",
        content: tests
          .replaceAll("total", "withTax")
          .replace("lib/withTax", "lib/tax")
          .replace("[1, 2, 4]), 7", "10), 12"),
      },
      {
        write: "server.js",
        content: server.replace(
          "  response.end(",
          '  if (pathname === "/tax") return response.end("with tax " + require("./lib/tax").withTax(10));\n  response.end(',
        ),
      },
    ],
  };

  it("gets a feature, as a branch of its remote too; its own tests pass before and after, and it is not touched", async () => {
    const { directory, trace, before } = await someonesProject("feature");
    expect(await ownTests(directory)).toBe(0);
    const remote = join(scratch, "remote.git");
    await git(scratch, "clone", "-q", "--bare", directory, remote);
    const [open, opened] = [join(scratch, "open"), join(scratch, "opened")];
    await writeFile(open, `#!/bin/sh\necho "$SLIPWAY_BRANCH $SLIPWAY_BASE $SLIPWAY_TITLE" >> ${opened}\n`);
    await chmod(open, 0o755);
    await using builds = await openWorld({
      sandboxes: "local",
      server: {
        remote: { pushUrl: `file://${remote}`, pullRequestCommand: open },
        program: scriptedApp([tax], { ...appThatShows("/tax", "with tax 12"), isThere: true }),
      },
    });
    const build = await builds.start({ mode: "feature", source: { directory }, request: "Show prices with tax" });
    const { view, queue } = await expectSucceeded(builds, build);
    expect(queue.gates.filter(({ passed }) => passed === 0)).toEqual([]);
    expect(queue.gates.map(({ name }) => name)).toEqual(expect.arrayContaining(["tests", "intent", "main-test"]));
    const main = await mainOf(builds, build);
    expect((await readdir(main, { recursive: true })).toSorted()).toEqual([
      ...[".gitignore", "README.md", "lib", "lib/tax.js", "lib/total.js", "package.json", "server.js"],
      ...["test", "test/tax.test.js", "test/total.test.js"],
    ]);
    expect(await readFile(join(main, "test/total.test.js"), "utf8")).toBe(tests);
    expect(await ownTests(main)).toBe(0);
    await vi.waitFor(async () => expect(await builds.shown(build, "tax")).toBe("with tax 12"));
    const { events } = await builds.server.face.events(localUser, build, { after: 0, limit: 500 });
    expect(events.find(({ type }) => type === "merge.ended")?.data).toMatchObject({
      merged: true,
      main: { commit: view.main },
      fileCount: 3,
      files: [
        { path: "lib/tax.js", change: "added" },
        { path: "server.js", change: "changed" },
        { path: "test/tax.test.js", change: "added" },
      ],
    });
    const shown = await builds.server.face.file(localUser, build, { path: "lib/tax.js" });
    expect(shown).toMatchObject({ commit: view.main, content: expect.stringContaining("withTax") });
    const asked = `slipway/${build} trunk Show prices with tax\n`;
    await expect.poll(() => readFile(opened, "utf8").catch(() => "")).toBe(asked);
    expect(await git(remote, "log", "--format=%s", `slipway/${build}`)).toBe("tax\nServe them\nAdd prices");
    expect(await stateOf(directory)).toEqual(before);
    await expect(lstat(trace)).rejects.toThrow("ENOENT");
  });

  it("is mended by what its own tests say is wrong with it", async () => {
    const { directory, trace, before } = await someonesProject("fix", {
      "lib/total.js": total.replace("sum + price", "sum - price"),
    });
    expect(await ownTests(directory)).toBe(1);
    const mend: ScriptedTask = { id: "mend", build: () => [{ write: "lib/total.js", content: total }] };
    const asked: string[] = [];
    const script = scriptedApp([mend], { ...appThatShows("/total/2/3", "total 5"), isThere: true });
    const program: ScriptedProgram = (request) => {
      asked.push(request.prompt);
      return script(request);
    };
    await using builds = await openWorld({ sandboxes: "local", server: { program } });
    const build = await builds.start({ mode: "fix", source: { directory }, request: "Totals are wrong" });
    const { view } = await expectSucceeded(builds, build);
    const [intent] = await builds.server.store.builds.records(build, "intents");
    expect(intent?.intent).toMatchObject({
      start: { mode: "fix", diagnosis: { problems: [{ evidence: expect.stringContaining("prices add up") }] } },
    });
    expect(asked[0]).toContain("prices add up");
    const main = await mainOf(builds, build);
    expect(await ownTests(main)).toBe(0);
    expect(await readFile(join(main, "test/total.test.js"), "utf8")).toBe(tests);
    expect(await stateOf(directory)).toEqual(before);
    await expect(lstat(trace)).rejects.toThrow("ENOENT");
    const copy = join(scratch, "copy");
    await git(scratch, "clone", "-q", directory, copy);
    const { repository = "", branch = "" } = view.result ?? {};
    await git(copy, "fetch", "-q", repository, branch);
    await git(copy, "merge", "-q", "--ff-only", "FETCH_HEAD");
    expect(await git(copy, "log", "--format=%s")).toBe("mend\nServe them\nAdd prices");
    expect(await ownTests(copy)).toBe(0);
  });
});

describe("a repository that is not as usual", () => {
  let builds: WorldWith<"server">;
  let asked = 0;
  beforeAll(async () => {
    const script = scriptedApp([{ id: "anything" }], { isThere: true });
    const program: ScriptedProgram = (request) => {
      asked++;
      return script(request);
    };
    builds = await openWorld({ sandboxes: "local", server: { program } });
  });
  afterAll(() => builds[Symbol.asyncDispose]());

  async function modules(directory: string): Promise<void> {
    const { directory: other } = await someonesProject("library");
    await git(directory, "submodule", "--quiet", "add", other, "vendor/library");
    await git(directory, "commit", "-qm", "Take in a library");
  }

  it.each<[string, string, RegExp, (directory: string) => Promise<unknown>, string?]>([
    [
      "has uncommitted changes",
      "repository_refused",
      /has 2 uncommitted changes \(lib\/total\.js, README\.md\): commit/,
      dirty,
    ],
    ["has a submodule", "repository_refused", /"vendor\/library" is a submodule/, modules],
    ["is not there", "invalid_request", /cannot be read/, (directory) => rm(directory, { recursive: true })],
    ["is a directory in one", "repository_refused", /is inside the repository/, asItIs, "lib"],
    [
      "is damaged",
      "repository_refused",
      /cannot be imported/,
      (directory) => rm(join(directory, ".git/objects"), { recursive: true }),
    ],
    ["has a file that is too large", "repository_refused", /"data\.bin" has \d+ bytes, more than/, huge],
  ])("and %s ends the build before anything is asked or made", async (name, code, message, change, below = "") => {
    const { directory: root } = await someonesProject(name);
    await change(root);
    const directory = join(root, below);
    const before = await stateOf(root).catch(() => []);
    asked = 0;
    const build = await builds.start({ mode: "fix", source: { directory } });
    const view = await builds.ended(build);
    expect(view).toMatchObject({
      status: "failed",
      reason: "unplannable",
      main: null,
      repository: null,
      preview: null,
    });
    const failed = (await builds.events(build)).find(({ type }) => type === "stage.failed");
    expect(failed?.data).toMatchObject({ stage: "draft", code, message: expect.stringMatching(message) });
    expect(asked).toBe(0);
    expect(await builds.provider.list()).toEqual([]);
    const left = await readdir(join(builds.directory, "state/builds", build), { recursive: true }).catch(() => []);
    expect(left.filter((path) => path !== "quarantine")).toEqual([]);
    expect(await stateOf(root).catch(() => [])).toEqual(before);
  });

  it.each<[string, (directory: string) => Promise<unknown>, readonly string[]]>([
    ["is shallow", shallow, ["package.json", "lib/total.js"]],
    ["was never committed to", unborn, ["package.json", "lib/total.js", "notes.txt"]],
    ["is empty", empty, []],
  ])("and %s is as good as any", async (name, change, files) => {
    const { directory } = await someonesProject(name);
    await change(directory);
    const before = await stateOf(directory);
    const build = await builds.start({ mode: "feature", source: { directory }, hold: "intent" });
    await vi.waitFor(
      async () =>
        expect(await builds.server.face.get(localUser, build)).toMatchObject({
          planning: { stage: "lock", step: "held" },
        }),
      { timeout: 300_000, interval: 200 },
    );
    for (const path of files) expect(await builds.file(build, path)).toBeDefined();
    expect(await stateOf(directory)).toEqual(before);
    await builds.server.face.cancel(localUser, build);
    await builds.ended(build);
  });
});

async function dirty(directory: string): Promise<void> {
  await put(directory, { "README.md": "# Costs\n", "lib/total.js": "staged\n" });
  await git(directory, "add", "lib/total.js");
}

async function asItIs(): Promise<void> {}

async function huge(directory: string): Promise<void> {
  await writeFile(join(directory, "data.bin"), "");
  await truncate(join(directory, "data.bin"), 65 * 1024 ** 2);
  await git(directory, "add", "data.bin");
  await git(directory, "commit", "-qm", "Add data");
}

async function shallow(directory: string): Promise<void> {
  const whole = `${directory} (whole)`;
  await rename(directory, whole);
  await git(scratch, "clone", "-q", "--depth", "1", `file://${whole}`, directory);
}

async function unborn(directory: string): Promise<void> {
  await rm(join(directory, ".git"), { recursive: true });
  await git(directory, "init", "-q");
}

async function empty(directory: string): Promise<void> {
  await rm(directory, { recursive: true });
  await mkdir(directory);
  await git(directory, "init", "-q");
}
