import { execFile } from "node:child_process";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { type BuildSource, newId } from "@slipway/contract";
import type { WorkingBuild } from "@slipway/engine";
import { projectPath, run } from "@slipway/sandbox";
import { expect, it, onTestFinished } from "vitest";
import { commit, git as gitAt } from "../../testing/git.ts";
import { openWorld } from "../../testing/world.ts";
import { createRemote } from "../merging/remote.ts";
import { createRepositories } from "../repository/repositories.ts";
import { openBuildRepository } from "../repository/repository.ts";
import { bundleOf, isMainElsewhere, makeMain } from "./make-main.ts";
import { plannedBuild } from "./testing.ts";

const execute = promisify(execFile);
const build: WorkingBuild = {
  id: newId("bld"),
  account: "ada",
  project: "shop",
  mode: "feature",
  request: "Sort the list",
};
const signal = AbortSignal.timeout(300_000);

async function setUp(source: BuildSource | null = null) {
  const world = await openWorld({ sandboxes: "local", store: {} });
  onTestFinished(() => world[Symbol.asyncDispose]());
  const { directory, provider } = world;
  const repository = await openBuildRepository({ directory: join(directory, "build"), environment: process.env });
  const make = (from = source, mode: WorkingBuild["mode"] = "feature") =>
    makeMain({ provider, repository, source: async () => from, clock: { now: () => 0 }, signal }, { ...build, mode });
  return { ...world, repository, make };
}

it("a new app begins with nothing, and is made once", async () => {
  const { make, repository } = await setUp();
  const made = await make(null, "new");
  expect(made).toMatchObject({ type: "main.made", key: "main", data: { commit: await repository.main() } });
  expect(await make(null, "new")).toEqual(made);
});

it("of servers on one database, the first to report main has it, and for all others it is elsewhere", async () => {
  const world = await setUp();
  const { directory, provider, store } = world;
  const planned = await plannedBuild(world, ["list"]);
  const servers = ["first", "late", "other"].map((name, index) => {
    const repositories = createRepositories({ directory: join(directory, name), environment: process.env });
    const parts = { provider, source: async () => null, clock: { now: () => index * 1000 }, signal };
    return {
      repositories,
      make: async () => await makeMain({ ...parts, repository: await repositories.of(planned.id) }, planned),
      isElsewhere: () => isMainElsewhere(store, repositories, planned.id),
    };
  });
  const [first, late, other] = servers as [(typeof servers)[0], (typeof servers)[0], (typeof servers)[0]];
  const elsewhere = () => Promise.all(servers.map(({ isElsewhere }) => isElsewhere()));
  const made = await first.make();
  const lateMade = await late.make();
  expect(await elsewhere()).toEqual([false, false, false]);
  await store.events.report(planned.id, [made, lateMade]);
  expect(await elsewhere()).toEqual([false, true, true]);
  expect(await other.repositories.builds()).toEqual([]);
});

it("a directory's last commit becomes main, and uncommitted changes are refused", async () => {
  const { make, directory, repository } = await setUp();
  const source = join(directory, "app");
  await gitAt(directory, "init", "-q", source);
  await commit(source, "Begin", { "list.txt": "socks\n" });
  await writeFile(join(source, "list.txt"), "shoes\n");
  await expect(make({ directory: source })).rejects.toMatchObject({ code: "repository_refused" });
  await writeFile(join(source, "list.txt"), "socks\n");
  await make({ directory: source });
  const files = await repository.read(await repository.main(), () => true);
  expect([...files].map(([path, content]) => [path, content.toString()])).toEqual([["list.txt", "socks\n"]]);
});

it.each<[string, BuildSource | null]>([
  ["no repository", null],
  ["an address with a password", { repository: "https://me:secret@example.com/app.git" }],
  ["an address that is none", { repository: "ext::sh -c evil" }],
])("a build with %s cannot begin", async (_, source) => {
  const { make } = await setUp();
  await expect(make(source)).rejects.toMatchObject({ code: "invalid_request" });
});

const identity = ["-c", "user.name=A", "-c", "user.email=a@localhost"];

it("a shallow clone leaves its sandbox as one commit that names the original", async () => {
  const { provider, repository } = await setUp();
  await using sandbox = await provider.create({});
  const script = `set -e; git init -q -b trunk /tmp/origin; cd /tmp/origin
    for n in one two; do echo $n > list.txt; git add .; git ${identity.join(" ")} commit -qm $n; done
    git clone -q --depth 1 file:///tmp/origin ${projectPath}; git rev-parse HEAD`;
  const { exitCode, stdout } = await run(sandbox, script);
  expect(exitCode).toBe(0);
  const { main, origin } = await repository.create({ from: await bundleOf(sandbox, signal), atMs: 0 });
  expect((await repository.read(main, () => true)).get("list.txt")?.toString()).toBe("two\n");
  expect(origin).toMatchObject({ commit: stdout.trim(), branch: "trunk" });
  expect(Buffer.from(origin?.object ?? "", "base64").toString()).toMatch(/^tree \w{40}\nparent [\s\S]*\n\ntwo\n$/);
  await run(sandbox, `cd ${projectPath}; git checkout -q --detach`);
  expect(await bundleOf(sandbox, signal)).toMatchObject({ origin: { commit: stdout.trim(), branch: null } });
  await run(sandbox, `rm -rf ${projectPath}; git init -q ${projectPath}`);
  await expect(bundleOf(sandbox, signal)).rejects.toMatchObject({ code: "repository_refused" });
});

it("a build's result for a cloned repository is pushed on top of the commit it began with", async () => {
  const { directory, provider } = await setUp();
  const theirs = join(directory, "theirs");
  const git = (at: string, ...args: string[]) => gitAt(join(directory, at), ...args);
  await git(".", "init", "-q", "-b", "trunk", "theirs");
  for (const text of ["one", "two"]) await commit(theirs, text, { "list.txt": `${text}\n`, [`${text}.bin`]: text });
  const began = await git("theirs", "rev-parse", "HEAD");
  await git(".", "clone", "-q", "--bare", "theirs", "remote.git");
  await git("remote.git", "bundle", "create", "-q", "../remote.bundle", "--all", "HEAD");

  const address = "https://example.com/app.git";
  const copied = await readFile(join(directory, "remote.bundle"));
  /** Its sandboxes have a copy of the remote, and take the address for it. */
  const create: typeof provider.create = async (...args) => {
    const sandbox = await provider.create(...args);
    const script = `set -e; cat > /tmp/remote.bundle; git clone -q --bare /tmp/remote.bundle /tmp/remote.git
      git config --global url.file:///tmp/remote.git.insteadOf ${address}`;
    expect(await run(sandbox, script, { input: copied })).toMatchObject({ exitCode: 0 });
    return sandbox;
  };
  const copying = { create, get: provider.get, list: provider.list };
  const repositories = createRepositories({ directory: join(directory, "builds"), environment: process.env });
  const repository = await repositories.of(build.id);
  const source = async () => ({ repository: address });
  await makeMain({ provider: copying, repository, source, clock: { now: () => 0 }, signal }, build);
  expect(await provider.list()).toEqual([]);

  // Their work continues meanwhile.
  await commit(theirs, "three", { "other.txt": "three\n" });
  await git("theirs", "push", "-q", "../remote.git", "trunk");

  const main = await repository.main();
  const script = `blob=$(echo sorted | git hash-object -w --stdin)
    (git ls-tree ${main}; printf '100644 blob %s\\tsorted.txt\\n' $blob) | git mktree`;
  const cwd = join(directory, "builds", build.id, "repository.git");
  const tree = (await execute("sh", ["-c", script], { cwd })).stdout.trim();
  await repository.moveMain(main, await repository.commit({ tree, parents: [main], message: "Sort", atMs: 0 }));
  const told: string[] = [];
  await using remote = createRemote({
    repositories,
    environment: process.env,
    pushUrl: `file://${join(directory, "remote.git")}`,
    store: { builds: { get: () => Promise.reject(new Error("not asked for")) }, notes: { list: async () => [] } },
    note: async () => {},
    tell: async (_, { type, data }) => void told.push(`${type} ${JSON.stringify(data)}`),
    log: () => {},
  });
  await remote.push(build);
  expect(told).toEqual([expect.stringMatching(/^remote.pushed /)]);
  const branch = `slipway/${build.id}`;
  expect(await git("remote.git", "merge-base", "trunk", branch)).toBe(began);
  expect(await git("remote.git", "diff", "--name-status", began, branch)).toBe("A\tsorted.txt");
  expect(await git("remote.git", "log", "--format=%s", branch)).toBe("Sort\ntwo\none");
  await git("remote.git", "fsck", "--strict");
});
