import { execFile } from "node:child_process";
import { chmod, mkdir, readdir, symlink, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import type { BuildSource } from "@slipway/contract";
import { planner } from "@slipway/gateway/scripted";
import type { SandboxProvider } from "@slipway/sandbox";
import { createFakeProvider, type FakeProgram } from "@slipway/sandbox/testing/provider";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { put } from "../../testing/git.ts";
import { openWorld, type WorldWith } from "../../testing/world.ts";
import { openRepository, type RepositoryLimits } from "./repository.ts";

const run = promisify(execFile);
// npm takes seconds to start, and more beside other tests.

let world: WorldWith<"sandboxes">;
let scratch: string;
let provider: SandboxProvider;
let builds = 0;

beforeAll(async () => {
  world = await openWorld({ sandboxes: "local" });
  ({ directory: scratch, provider } = world);
});
afterAll(() => world[Symbol.asyncDispose]());

async function directoryOf(name: string, files: Readonly<Record<string, string>>): Promise<string> {
  const directory = join(scratch, name);
  await mkdir(directory, { recursive: true });
  await put(directory, files);
  return directory;
}

function reader(source: BuildSource | null, limits: Partial<RepositoryLimits> = {}) {
  const labels = { build: `build-${++builds}` };
  return openRepository({ provider, source: async () => source, environment: process.env, labels, limits });
}

const broken = {
  "package.json": JSON.stringify({
    name: "sums",
    type: "module",
    scripts: { build: "node --check src/sum.js", test: "node --test src/sum.test.js" },
  }),
  "README.md": "# Sums\n\nAdds two numbers.\n",
  "src/sum.js": "export const sum = (a, b) => a - b;\n",
  "src/sum.test.js": `import assert from "node:assert/strict";
import test from "node:test";
import { sum } from "./sum.js";
test("two and two are four", () => assert.equal(sum(2, 2), 4, "two and two are not four"));
`,
};

describe("a small broken repository", () => {
  test("is summarised, and its failing test is the evidence", async () => {
    await using repository = reader({ directory: await directoryOf("broken", broken) });
    expect(await repository.summarize({})).toEqual({
      files: ["README.md", "package.json", "src/sum.js", "src/sum.test.js"],
      notes: expect.stringMatching(/^README\.md:\n# Sums[\s\S]*package\.json:\n\{"name":"sums"/),
      routes: [],
    });
    const { problems } = await repository.diagnose({});
    expect(problems).toMatchObject([{ title: "npm run test ended with exit code 1" }]);
    expect(problems[0]?.evidence).toContain("two and two are not four");
    expect(problems[0]?.evidence.length).toBeLessThanOrEqual(2001);
    expect(problems[0]?.files).toContain("src/sum.test.js");
  });

  test("is planned to be repaired, with what was seen in it", async () => {
    const directory = await directoryOf("planned", broken);
    await using site = await openWorld({
      model: planner,
      planning: {
        request: "Repair it",
        mode: "fix",
        openRepository: () => reader({ directory }),
      },
    });
    expect(await site.drive()).toMatchObject({ status: "paused", reason: "user" });
    const [record] = await site.store.builds.records(site.build, "intents");
    const problems = [{ title: "npm run test ended with exit code 1" }];
    expect(record?.intent).toMatchObject({ start: { mode: "fix", diagnosis: { problems } } });
    expect(site.asked[0]?.prompt).toContain("two and two are not four");
    const [plan] = await site.store.builds.records(site.build, "plans");
    expect(plan?.tasks.flatMap(({ criteria }) => criteria)).toContain("problem-gone");
  });

  test("leaves no sandbox behind", async () => {
    const repository = reader({ directory: await directoryOf("left", broken) });
    await repository.summarize({});
    expect(await provider.list()).toHaveLength(1);
    await repository[Symbol.asyncDispose]();
    expect(await provider.list()).toEqual([]);
  });
});

test("a sandbox that a killed server has left for the build is ended", async () => {
  const labels = { build: "left-behind" };
  const options = { provider, environment: process.env, labels };
  const directory = await directoryOf("behind", broken);
  const other = await provider.create({ labels });
  await openRepository({ ...options, source: async () => ({ directory }) }).summarize({});
  const [left] = (await provider.list({ labels })).filter(({ id }) => id !== other.id);
  await using repository = openRepository({ ...options, source: async () => ({ directory }) });
  await repository.summarize({});
  const ids = (await provider.list({ labels })).map(({ id }) => id);
  expect(ids).toHaveLength(2);
  expect(ids).toContain(other.id);
  expect(ids).not.toContain(left?.id);
  await other.destroy();
});

test("a sound repository has no problems", async () => {
  const sound = { ...broken, "src/sum.js": "export const sum = (a, b) => a + b;\n" };
  await using repository = reader({ directory: await directoryOf("sound", sound) });
  expect(await repository.diagnose({})).toEqual({ problems: [] });
});

test("what a lock file names is installed from the host's registries, and nothing else is reached", async () => {
  const probe = `import { connect } from "node:net";
const proxy = new URL(process.env.HTTPS_PROXY ?? process.env.https_proxy ?? "http://127.0.0.1:1");
connect(Number(proxy.port), proxy.hostname, function () {
  this.end("CONNECT registry.npmjs.org:443 HTTP/1.1\\r\\n\\r\\n");
}).on("data", (data) => console.log(String(data).split("\\r\\n")[0])).on("error", () => console.log("nothing listens"));
process.exitCode = 1;
`;
  const files = {
    "package.json": JSON.stringify({ name: "a", private: true, scripts: { test: "node probe.mjs" } }),
    "package-lock.json": JSON.stringify({
      name: "a",
      lockfileVersion: 3,
      requires: true,
      packages: { "": { name: "a" } },
    }),
    "probe.mjs": probe,
  };
  await using repository = reader({ directory: await directoryOf("locked", files) });
  const { problems } = await repository.diagnose({});
  expect(problems).toMatchObject([{ title: "npm run test ended with exit code 1" }]);
  expect(problems[0]?.evidence).toMatch(/403|nothing listens/);
});

test("an installation that fails is the problem, and dependencies without a lock file are one", async () => {
  const dependencies = { "slipway-has-no-such-package": "1.0.0" };
  const manifest = JSON.stringify({ name: "a", version: "1.0.0", dependencies, scripts: { build: "true" } });
  await using loose = reader({ directory: await directoryOf("loose", { "package.json": manifest }) });
  expect((await loose.diagnose({})).problems).toMatchObject([{ title: "There is no lock file" }]);
  const files = { "package.json": manifest, "package-lock.json": "{}" };
  await using torn = reader({ directory: await directoryOf("torn", files) });
  expect((await torn.diagnose({})).problems).toMatchObject([
    { title: expect.stringMatching(/^npm ci ended with exit code [1-9]/) },
  ]);
});

describe("a hostile repository", () => {
  test("its links lead nowhere on the host, and its pipes and links are not read", async () => {
    await writeFile(join(scratch, "secret"), "a secret of the host");
    const directory = await directoryOf("links", { "src/a.js": "1" });
    await symlink(join(scratch, "secret"), join(directory, "README.md"));
    await symlink("../../../../../../etc/passwd", join(directory, "package.json"));
    await symlink("/", join(directory, "root"));
    await run("mkfifo", [join(directory, "requirements.txt")]);
    await using repository = reader({ directory });
    expect(await repository.summarize({})).toEqual({ files: ["src/a.js"], notes: "", routes: [] });
    expect(await repository.diagnose({})).toEqual({ problems: [] });
  });

  test("its git settings start no program on the host", async () => {
    const directory = await directoryOf("settings", { "a.js": "1" });
    await run("git", ["init", "-q", directory]);
    const hook = join(scratch, "hook");
    await writeFile(hook, `#!/bin/sh\ntouch '${scratch}/witness'\n`);
    await chmod(hook, 0o755);
    for (const name of ["core.fsmonitor", "core.sshCommand", "core.pager", "diff.external", "core.editor"]) {
      await run("git", ["-C", directory, "config", name, hook]);
    }
    await run("git", ["-C", directory, "config", "core.hooksPath", scratch]);
    await using repository = reader({ directory });
    expect((await repository.summarize({})).files).toEqual(["a.js"]);
    expect(await readdir(scratch)).not.toContain("witness");
  });

  test("a huge file is left out, and its words are held to what a prompt takes", async () => {
    const directory = await directoryOf("huge", { "README.md": `\u001b[2J${"word ".repeat(100_000)}`, "a.js": "1" });
    await writeFile(join(directory, "disk.img"), "");
    await truncate(join(directory, "disk.img"), 1024 ** 4);
    await using repository = reader({ directory });
    const { files, notes } = await repository.summarize({});
    expect(files).toEqual(["README.md", "a.js"]);
    expect(notes).toMatch(/^README\.md:\nword /);
    expect(notes.length).toBeLessThan(5000);
  });

  test("thousands of files are taken and told in part; more than the limits are refused", async () => {
    const names = Array.from({ length: 2100 }, (_, index) => `src/part-${index % 50}/file-${index}.js`);
    const directory = await directoryOf("many", Object.fromEntries(names.map((name) => [name, "1\n"])));
    await using repository = reader({ directory });
    expect((await repository.summarize({})).files).toHaveLength(2000);
    await using few = reader({ directory }, { entries: 100 });
    await expect(few.summarize({})).rejects.toMatchObject({ code: "too_large" });
    await using small = reader({ directory }, { bytes: 100 });
    await expect(small.summarize({})).rejects.toMatchObject({ code: "too_large" });
    expect(await provider.list()).toHaveLength(1);
  });

  test("commands that do not end, and logs without an end, are held", async () => {
    const flood = "yes flood | head -c 50000000; echo the last word; exit 3";
    const scripts = { build: flood, test: "sleep 1000" };
    const directory = await directoryOf("endless", { "package.json": JSON.stringify({ scripts }) });
    await using repository = reader({ directory }, { commandMs: 20_000 });
    const { problems } = await repository.diagnose({});
    expect(problems).toMatchObject([
      { title: "npm run build ended with exit code 3" },
      { title: expect.stringMatching(/^npm run test did not end within \d+ seconds$/) },
    ]);
    expect(problems[0]?.evidence).toContain("the last word");
  });

  test("a package.json that is none, or is endless, is a repository without commands", async () => {
    await using torn = reader({ directory: await directoryOf("no-json", { "package.json": "{{{{" }) });
    expect(await torn.diagnose({})).toEqual({ problems: [] });
    const endless = `{"x":"${"x".repeat(9 * 1024 * 1024)}"}`;
    await using large = reader({ directory: await directoryOf("endless-json", { "package.json": endless }) });
    expect((await large.diagnose({})).problems).toMatchObject([{ evidence: expect.stringContaining("more than") }]);
  });
});

describe("what can not be read", () => {
  test.each<[string, () => BuildSource | null, string]>([
    ["a build without a repository", () => null, "invalid_request"],
    ["a directory that is not there", () => ({ directory: join(scratch, "nowhere") }), "invalid_request"],
    ["a file", () => ({ directory: "/etc/passwd" }), "invalid_request"],
    ["an address that needs a key", () => ({ repository: "git@example.com:app.git" }), "invalid_request"],
    ["an address with a password", () => ({ repository: "https://a:b@example.com/app.git" }), "invalid_request"],
    ["an address in numbers", () => ({ repository: "https://127.0.0.1/app.git" }), "invalid_network"],
  ])("%s is refused, and leaves no sandbox", async (_, source, code) => {
    const before = await provider.list();
    await using repository = reader(source());
    await expect(repository.summarize({})).rejects.toMatchObject({ code });
    expect(await provider.list()).toEqual(before);
  });

  test("who gives up is let go", async () => {
    await using repository = reader({ directory: await directoryOf("given-up", broken) });
    await expect(repository.summarize({ signal: AbortSignal.abort() })).rejects.toMatchObject({ code: "aborted" });
    expect(await provider.list()).toEqual([]);
  });

  test("an empty directory is a repository without files", async () => {
    await using repository = reader({ directory: await directoryOf("empty", {}) });
    expect(await repository.summarize({})).toEqual({ files: [], notes: "", routes: [] });
    expect(await repository.diagnose({})).toEqual({ problems: [] });
  });
});

test("a repository is cloned in the sandbox, which reaches its host only while that goes on", async () => {
  const cloned: string[][] = [];
  const git: FakeProgram = async ({ argv, stderr }) => {
    cloned.push([...argv]);
    if (argv.some((word) => word.includes("broken"))) {
      stderr.write("fatal: it is not there");
      return 128;
    }
    return 0;
  };
  const fake = createFakeProvider({ git, find: async () => 0 });
  const open = (repository: string) =>
    openRepository({
      provider: fake,
      source: async () => ({ repository }),
      environment: {},
      labels: { build: repository },
    });
  await using sound = open("https://example.com/app.git");
  expect(await sound.summarize({})).toEqual({ files: [], notes: "", routes: [] });
  expect(cloned[0]).toEqual(expect.arrayContaining(["clone", "--depth", "https://example.com/app.git"]));
  expect(await fake.list()).toMatchObject([{ network: { domains: [] } }]);
  await using broken = open("https://example.com/broken.git");
  await expect(broken.summarize({})).rejects.toMatchObject({
    code: "exec_failed",
    message: expect.stringContaining("it is not there"),
  });
  expect(await fake.list()).toHaveLength(1);
});
