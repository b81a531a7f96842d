import process from "node:process";
import { type NetworkPolicyInput, newId } from "@slipway/contract";
import { projectPath, type RestrictedSandbox, readText, run, type SandboxProvider } from "@slipway/sandbox";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { sandboxesOf } from "../../testing/processes.ts";
import { openWorld, type WorldWith } from "../../testing/world.ts";
import { packageEnvironment } from "./install.ts";
import { createWorkspaces } from "./workspaces.ts";

// npm takes seconds to start, and more beside other tests.

let place: WorldWith<"registry" | "sandboxes" | "repository">;
beforeAll(async () => {
  place = await openWorld({ registry: {}, sandboxes: "local", repository: "empty" });
  const scripts = { postinstall: "node -e \"require('fs').writeFileSync('made.txt', 'by a script')\"" };
  await place.registry.publish("greeting", "1.0.0", { "index.js": "module.exports = 'hello';" }, { scripts });
});
afterAll(() => place[Symbol.asyncDispose]());

const manifest = (fields: object = {}) => JSON.stringify({ name: "app", version: "1.0.0", private: true, ...fields });
const dependencies = { greeting: "^1.0.0" };
const said = "require('greeting'), require('fs').readFileSync('node_modules/greeting/made.txt', 'utf8')";
const app = { "package.json": manifest({ dependencies }), "src/main.js": `console.log(${said});` };
const gate = { purpose: "gate" };

async function output(sandbox: RestrictedSandbox, ...argv: string[]): Promise<string> {
  const { stdout, stderr } = await run(sandbox, argv, { cwd: projectPath });
  return stdout + stderr;
}
const main = (sandbox: RestrictedSandbox) => output(sandbox, "node", "src/main.js");
/** What the registry is asked while the work goes on. */
async function asked(work: () => Promise<unknown>): Promise<string[]> {
  const before = place.registry.requests.length;
  await work();
  return place.registry.requests.slice(before);
}

test("a workspace has the commit's files and what they depend on, and reaches nothing; the next one asks for nothing", async () => {
  const { build, provider } = place;
  expect(await createWorkspaces(place).base(build, await place.commit({ "README.md": "" }))).toBeNull();
  const commit = await place.commit(app);
  const workspaces = createWorkspaces(place);
  const opening = [workspaces.open(build, commit, gate), workspaces.open(build, commit, gate)] as const;
  await using first = await opening[0];
  await using second = await opening[1];
  expect(await main(first)).toBe("hello by a script\n");
  expect(await main(second)).toBe("hello by a script\n");
  expect(place.registry.requests.filter((path) => path.endsWith(".tgz"))).toHaveLength(1);
  expect(await first.info()).toMatchObject({
    labels: { build: build.id, purpose: "gate" },
    network: { registries: false, domains: [], cidrs: [] },
  });

  // Another process and another build, and a commit with the same manifest.
  const next = await place.commit({ "src/main.js": "console.log('other', require('greeting'));" });
  const other = { ...build, id: newId("bld") };
  const requests = await asked(async () => {
    await using third = await createWorkspaces(place).open(other, next, gate);
    expect(await main(third)).toBe("other hello\n");
  });
  expect(requests).toEqual([]);
  expect((await provider.list()).map(({ id }) => id).sort()).toEqual([first.id, second.id].sort());
});

test("what was downloaded before is not asked for again, and another project gets nothing of it", async () => {
  const { build, provider } = place;
  const workspaces = createWorkspaces(place);
  const commit = await place.commit(app);
  const installed = await workspaces.base(build, commit);
  await using made = await provider.create({ snapshot: there(installed) });
  const lock = await readText(made.files, `${projectPath}/package-lock.json`);
  await made.destroy();

  await provider.snapshots.delete(there(installed));
  const again = await asked(async () => {
    await using sandbox = await workspaces.open(build, commit, gate);
    expect(await main(sandbox)).toBe("hello by a script\n");
  });
  expect(again).toEqual([]);

  const stranger = { ...build, project: "another" };
  const locked = await place.commit({ "package-lock.json": lock });
  expect(await asked(() => workspaces.base(stranger, locked))).toContainEqual(expect.stringMatching(/\.tgz$/));
  const nothing = await place.commit({ "package.json": null, "package-lock.json": null });
  const packages = there(await workspaces.base(stranger, nothing));
  await using attempt = await provider.create({ snapshot: packages, env: { ...packageEnvironment } });
  await expect(attempt.files.stat(projectPath)).rejects.toMatchObject({ code: "file_not_found" });
  // It reaches nothing, and the lock file is not there to say where the package is.
  expect(await run(attempt, ["npm", "install", "greeting"])).toMatchObject({ exitCode: 0 });
});

function there<T>(value: T | null | undefined): T {
  if (value === null || value === undefined) throw new Error("it is not there");
  return value;
}

test("the scripts of a project run with all of its files, in its own workspace only", async () => {
  const { build } = place;
  const workspaces = createWorkspaces(place);
  const scripts = { prepare: "node src/prepare.js" };
  const poison = "require('fs').writeFileSync('node_modules/greeting/index.js', `module.exports = 'mine'`)";
  const fields = { "package.json": manifest({ dependencies, scripts }), "src/main.js": `console.log(${said});` };
  const hostile = await place.commit({ ...fields, "src/prepare.js": poison });
  await using mine = await workspaces.open(build, hostile, gate);
  expect(await main(mine)).toBe("mine by a script\n");
  expect(await mine.info()).toMatchObject({ network: { registries: false } });
  const honest = await place.commit({ "src/prepare.js": "" });
  await using sandbox = await workspaces.open(build, honest, gate);
  expect(await main(sandbox)).toBe("hello by a script\n");
});

test("of what scripts do at an install, only what is in the project is there afterwards", async () => {
  const { build, registry } = place;
  const outside = [
    ...["/usr/local/bin/npm", "/home/agent/.npmrc", "/etc/ld.so.preload", "/tmp/left"],
    ...["/workspace/node_modules/.bin/node", "/workspace/.npmrc"],
  ];
  const names = [...outside, `${projectPath}/node_modules/left`];
  const link = `ln -s /usr/local/bin ${projectPath}/linked`;
  const leave = names.map((path) => `mkdir -p $(dirname ${path}) && touch ${path}`).join(" && ");
  const scripts = { postinstall: `${leave} && ${link}; (sleep 600 &) > /dev/null 2>&1` };
  await registry.publish("tricks", "1.0.0", { "index.js": "" }, { scripts });
  // What is in git stands in the link's place, and not behind it.
  const linked = { "linked/npm": "by git" };
  const fields = { dependencies: { tricks: "1.0.0", ...dependencies } };
  for (const own of [{}, { scripts }]) {
    const commit = await place.commit({
      "package.json": manifest({ ...fields, ...own }),
      "package-lock.json": null,
      ...linked,
    });
    await using sandbox = await createWorkspaces(place).open(build, commit, gate);
    const found = await output(sandbox, "sh", "-c", `ls ${names.join(" ")} 2> /dev/null; pgrep -l sleep`);
    expect(found).toBe(`${projectPath}/node_modules/left\n`);
    expect(await output(sandbox, "node", "-p", "require('greeting')")).toBe("hello\n");
  }
});

test("a workspace reaches the hosts of its build's secrets, once what it depends on is installed", async () => {
  const { provider, secrets } = place;
  const build = { ...place.build, id: newId("bld") };
  const asked: NonNullable<NetworkPolicyInput>[] = [];
  const workspaces = createWorkspaces({
    ...place,
    provider: {
      snapshots: provider.snapshots,
      capabilities: provider.capabilities,
      create(request, call) {
        asked.push(request?.network ?? {});
        return provider.create(request, call);
      },
      get: (id, call) => provider.get(id, call),
      list: (filter, call) => provider.list(filter, call),
    },
  });
  const [host, header] = ["api.example.com", "x-key"];
  const kept = [{ host, header, value: "t0p" }];
  await secrets.keep(build.id, kept);
  const network = { registries: false, domains: [], secrets: [{ host, header }] };
  await using plain = await workspaces.open(build, await place.commit({ ...app, "package-lock.json": null }), gate);
  expect(await plain.info()).toMatchObject({ network });
  const scripts = { prepare: "true" };
  const own = await place.commit({ "package.json": manifest({ dependencies, scripts }) });
  await using withScripts = await workspaces.open(build, own, gate);
  expect(await withScripts.info()).toMatchObject({ network });
  expect(asked.filter(({ registries }) => registries).some((each) => each.secrets !== undefined)).toBe(false);
  expect(asked.filter((each) => each.secrets !== undefined)).toEqual([{ secrets: kept }, { secrets: kept }]);
});

test("an install that fails says why, and leaves no sandbox", async () => {
  const { build, provider } = place;
  const workspaces = createWorkspaces(place);
  const before = await provider.list();
  const commit = await place.commit({ "package.json": manifest({ dependencies: { nowhere: "1.0.0" } }) });
  await expect(workspaces.open(build, commit, gate)).rejects.toMatchObject({
    code: "install_failed",
    message: expect.stringMatching(/^npm install --ignore-scripts ended with exit code 1: [\s\S]*nowhere/),
  });
  await expect(workspaces.open(build, commit, { ...gate, signal: AbortSignal.abort() })).rejects.toMatchObject({
    code: "aborted",
  });
  await expect(workspaces.open(build, "f".repeat(40), gate)).rejects.toMatchObject({ code: "commit_not_found" });
  expect(await provider.list()).toEqual(before);
});

test("a commit is not at fault if a kill ends the sandbox that its files are written into", async () => {
  const provider: SandboxProvider = {
    ...place.provider,
    async create(...given) {
      const made = await place.provider.create(...given);
      return {
        ...made,
        async exec(...command) {
          const exec = await made.exec(...command);
          const init = sandboxesOf(place.directory).find(({ id }) => id === made.id)?.init;
          if (init === undefined) throw new Error(`${made.id} does not run`);
          process.kill(init.pid, "SIGKILL");
          await exec.wait();
          return exec;
        },
      };
    },
  };
  const commit = await place.commit({ "package.json": null, "README.md": "" });
  const opening = createWorkspaces({ ...place, provider }).open(place.build, commit, gate);
  await expect(opening).rejects.toMatchObject({ code: "provider_unavailable" });
});

test("an install that is cut short leaves no sandbox, and the next one ends what a killed process has left", async () => {
  const { build, provider, registry } = place;
  const before = await provider.list();
  registry.silent.add("/endless");
  const commit = await place.commit({ "package.json": manifest({ dependencies: { endless: "1.0.0" } }) });
  const workspaces = createWorkspaces(place);
  const opening = workspaces.open(build, commit, gate);
  const refused = expect(opening).rejects.toMatchObject({ code: "aborted" });
  await vi.waitFor(() => expect(registry.requests).toContain("/endless"), { timeout: 60_000, interval: 50 });
  expect(await provider.list()).toHaveLength(before.length + 1);
  await workspaces[Symbol.asyncDispose]();
  await refused;
  expect(await provider.list()).toEqual(before);

  await provider.create({ labels: { build: build.id, purpose: "install" } });
  await expect(createWorkspaces(place).base(build, await place.commit({ "package.json": "{" }))).resolves.toBeTruthy();
  const other = await place.commit({ "package.json": manifest({ version: "2.0.0", dependencies }) });
  await createWorkspaces(place).base(build, other);
  expect(await provider.list()).toEqual(before);
});

test("a workspace moves on to another commit: what changed is written, what is gone is removed", async () => {
  const { build } = place;
  const workspaces = createWorkspaces(place);
  const files = {
    "package.json": manifest(),
    "same.txt": "same",
    "old/deep/a.txt": "a",
    "b.txt": "1",
    "with space": "",
  };
  const gone = { "src/main.js": null, "src/prepare.js": null, "linked/npm": null };
  const from = await place.commit({ ...files, ...gone });
  await using sandbox = await workspaces.open(build, from, gate);
  await sandbox.files.write(`${projectPath}/untracked.txt`, "mine");
  const to = await place.commit({
    "old/deep/a.txt": null,
    "b.txt": "2",
    "new/*.txt": "c",
    "with space": "d",
    "-x": "e",
  });
  const since = (await sandbox.files.stat(`${projectPath}/same.txt`)).modifiedAt;
  expect(await workspaces.move(build, sandbox, { from, to })).toEqual(
    expect.arrayContaining(["-x", "b.txt", "new/*.txt", "old/deep/a.txt", "with space"]),
  );
  const listing = await output(sandbox, "find", ".", "-type", "f", "-newermt", "@0", "-printf", "%P\n");
  expect(listing.split("\n").filter(Boolean).sort()).toEqual([
    ...["-x", "README.md", "b.txt", "new/*.txt", "package.json", "same.txt", "untracked.txt", "with space"],
  ]);
  expect(await output(sandbox, "cat", "b.txt", "with space", "./-x", "same.txt")).toBe("2desame");
  expect((await sandbox.files.stat(`${projectPath}/same.txt`)).modifiedAt).toBe(since);
  await expect(sandbox.files.stat(`${projectPath}/old`)).rejects.toMatchObject({ code: "file_not_found" });

  const further = await place.commit({ "package.json": manifest({ dependencies }) });
  expect(await workspaces.move(build, sandbox, { from: to, to: further })).toBeNull();
});

test("what npm runs by a project's settings, in an install without scripts, is in no other workspace", async () => {
  const { build, registry } = place;
  await registry.publish("small", "1.0.0", { "index.js": "" }, {});
  const code = "process.getBuiltinModule('fs').writeFileSync('/usr/local/bin/npm','',{mode:0o755})";
  const hostile = await place.commit({
    "package.json": manifest({
      dependencies: { small: "1.0.0" },
      optionalDependencies: { none: "git+https://localhost/none.git" },
    }),
    "package-lock.json": null,
    ".npmrc": `git=/usr/bin/npm\nnode-options="--import=data:text/javascript,${code}"\n`,
  });
  await using mine = await createWorkspaces(place).open(build, hostile, gate);
  expect(await output(mine, "ls", "/usr/local/bin")).toBe("");
  const honest = await place.commit({ "package.json": manifest({ dependencies }), ".npmrc": null });
  await using sandbox = await createWorkspaces(place).open(build, honest, gate);
  expect(await output(sandbox, "ls", "/usr/local/bin")).toBe("");
});
