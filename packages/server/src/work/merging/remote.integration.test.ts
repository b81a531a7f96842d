import { execFile } from "node:child_process";
import { chmod, mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import type { NewEvent, NoteChange, WorkingBuild } from "@slipway/engine";
import { expect, it, onTestFinished } from "vitest";
import { git, makeTheirs } from "../../testing/git.ts";
import { driver } from "../../testing/world/store.ts";
import { openWorld } from "../../testing/world.ts";
import { createRepositories } from "../repository/repositories.ts";
import { createRemote, type RemoteParts, readRemoteEnd } from "./remote.ts";

const execute = promisify(execFile);

/** A build that began with somebody's repository, or with nothing, and a remote of theirs. */
async function setUp(mode: WorkingBuild["mode"], settings: (directory: string) => Partial<RemoteParts> = () => ({})) {
  const world = await openWorld({ store: {} });
  onTestFinished(() => world[Symbol.asyncDispose]());
  const { directory } = world;
  const bare = join(directory, "remote.git");
  await git(directory, "init", "-q", "--bare", bare);
  const theirs = await makeTheirs(join(directory, "theirs"));
  await git(theirs, "push", "-q", bare, "trunk");
  const build = await world.create({ mode, request: "Sort $(touch /tmp/evil) the list\nby name" });
  await world.lead(build);
  const repositories = createRepositories({ directory: join(directory, "builds"), environment: process.env });
  const repository = await repositories.of(build.id);
  await repository.create({ from: mode === "new" ? "empty" : { directory: theirs }, atMs: 0 });
  const { notes } = world.store;
  const told: NewEvent[] = [];
  const logged: string[] = [];
  const state = { status: "running" };
  const parts = {
    repositories,
    environment: { ...process.env, GIT_CONFIG_GLOBAL: join(directory, "gitconfig") },
    pushUrl: `file://${bare}`,
    finishWaitsMs: [],
    ...settings(directory),
    store: { builds: { get: async () => ({ ...build, ...state }) as never }, notes },
    note: (id: typeof build.id, changes: readonly NoteChange[]) => notes.write(id, driver, changes),
    tell: async (_: unknown, event: NewEvent) => void told.push(event),
    log: (message: string) => void logged.push(message),
  };
  const again = () => {
    const remote = createRemote(parts);
    onTestFinished(() => remote[Symbol.asyncDispose]());
    return remote;
  };
  const remote = again();
  const merge = async (atMs: number) => {
    const main = await repository.main();
    const tree = await git(join(repositories.directoryOf(build.id), "repository.git"), "rev-parse", `${main}^{tree}`);
    const to = await repository.commit({ tree, parents: [main], message: `Ümlaut ${atMs}\n\nTask: list`, atMs });
    await repository.moveMain(main, to);
    return to;
  };
  const end = () => readRemoteEnd(notes, build.id, repositories.directoryOf(build.id));
  return { directory, bare, theirs, build, repository, remote, again, told, logged, state, merge, end };
}

it("main of a new app is pushed after each merge, as a branch of its own", async () => {
  const { bare, build, remote, told, logged, merge } = await setUp("new");
  await merge(1000);
  await remote.push(build);
  const last = await merge(2000);
  await Promise.all([remote.push(build), remote.push(build)]);
  expect(await git(bare, "rev-parse", `refs/heads/slipway/${build.id}`)).toBe(last);
  expect(await git(bare, "for-each-ref", "--format=%(refname)")).toBe(
    `refs/heads/slipway/${build.id}\nrefs/heads/trunk`,
  );
  expect(told.map(({ type }) => type)).toEqual(["remote.pushed", "remote.pushed"]);
  expect(logged).toEqual([]);
});

it("main of somebody's repository is pushed on top of their own commit, so that it can be merged there", async () => {
  const { bare, theirs, build, remote, merge } = await setUp("feature");
  const branch = `refs/heads/slipway/${build.id}`;
  await merge(1000);
  await remote.push(build);
  const first = await git(bare, "rev-parse", branch);
  await merge(2000);
  await remote.push(build);
  expect(await git(bare, "log", "--format=%s", branch)).toBe("Ümlaut 2000\nÜmlaut 1000\ntwo\none");
  expect(await git(bare, "rev-parse", `${branch}~1`)).toBe(first);
  expect(await git(bare, "merge-base", branch, "trunk")).toBe(await git(theirs, "rev-parse", "HEAD"));
  await git(bare, "fsck", "--strict");
});

it.each([
  ["does not know the commit", "HEAD~1"],
  ["has nothing", null],
])("a remote that %s gets main as it is", async (_, known) => {
  const { theirs, bare, build, remote, merge } = await setUp("feature");
  await rm(bare, { recursive: true });
  await git(theirs, "init", "-q", "--bare", bare);
  if (known !== null) await git(theirs, "push", "-q", bare, `${known}:refs/heads/trunk`);
  const main = await merge(1000);
  await remote.push(build);
  expect(await git(bare, "rev-parse", `refs/heads/slipway/${build.id}`)).toBe(main);
});

it("main is not pushed on top of a commit of other files than it began with", async () => {
  const { directory, bare, theirs, build, remote, told, merge } = await setUp("feature");
  const origin = { commit: await git(theirs, "rev-parse", "HEAD~1"), branch: "trunk" };
  await writeFile(join(directory, "builds", build.id, "repository.git/origin.json"), JSON.stringify(origin));
  await merge(1000);
  await remote.push(build);
  expect(told).toMatchObject([{ type: "remote.failed", data: { reason: expect.stringContaining(origin.commit) } }]);
  expect(await git(bare, "for-each-ref", "--format=%(refname)")).toBe("refs/heads/trunk");
});

it("a remote that is away, or has something else there, is told of and tried again at the next merge", async () => {
  const { directory, bare, theirs, build, remote, told, logged, merge } = await setUp("new");
  await merge(1000);
  await execute("mv", [bare, join(directory, "away")]);
  await remote.push(build);
  expect(told).toMatchObject([{ type: "remote.failed", data: { reason: expect.stringContaining("git push to the") } }]);
  expect(logged).toHaveLength(1);
  await execute("mv", [join(directory, "away"), bare]);
  const main = await merge(2000);
  await remote.push(build);
  expect(await git(bare, "rev-parse", `refs/heads/slipway/${build.id}`)).toBe(main);
  await git(theirs, "push", "-qf", bare, `trunk:slipway/${build.id}`);
  await merge(3000);
  await remote.push(build);
  expect(told.at(-1)).toMatchObject({ type: "remote.failed" });
  expect(await git(bare, "rev-parse", `refs/heads/slipway/${build.id}`)).toBe(await git(theirs, "rev-parse", "HEAD"));
});

const away = (bare: string) =>
  `[url "file:///nowhere"]\ninsteadOf = file://${bare}\n[url "file://${bare}"]\npushInsteadOf = file://${bare}\n`;
/** All of it can be asked, and nothing comes when it is to be sent. */
const cutOff = () => '[uploadpack]\npackObjectsHook = "exit 1 #"\n';

it.each([
  ["can not be read", away],
  ["does not send all", cutOff],
])("a remote that %s for now is not taken for one that does not know the commit", async (_, troubleOf) => {
  const { directory, bare, theirs, build, remote, told, merge } = await setUp("feature");
  const config = join(directory, "gitconfig");
  await writeFile(config, troubleOf(bare));
  await merge(1000);
  await remote.push(build);
  expect(told).toMatchObject([{ type: "remote.failed", data: { reason: expect.stringContaining("git fetch") } }]);
  expect(await git(bare, "for-each-ref", "--format=%(refname)")).toBe("refs/heads/trunk");
  await rm(config);
  await remote.push(build);
  expect(told.at(-1)).toMatchObject({ type: "remote.pushed" });
  expect(await git(bare, "merge-base", `slipway/${build.id}`, "trunk")).toBe(await git(theirs, "rev-parse", "HEAD"));
});

const command = (directory: string) => ({ pullRequestCommand: join(directory, "open") });

it("a pull request is opened once, when the build has succeeded and main is pushed", async () => {
  const { directory, bare, build, remote, state, logged, merge } = await setUp("fix", command);
  const calls = join(directory, "calls");
  const script = `#!/bin/sh\nprintf '%s\\n' "$#" "$SLIPWAY_BRANCH" "$SLIPWAY_BASE" "$SLIPWAY_TITLE" >> ${calls}\necho address\n`;
  await writeFile(join(directory, "open"), script);
  await chmod(join(directory, "open"), 0o755);
  await merge(1000);
  for (const status of ["running", "failed", "cancelled"]) {
    state.status = status;
    await remote.noteEnd(build);
    await remote.finish(build.id);
  }
  expect(await git(bare, "for-each-ref", "--format=%(refname)")).toBe("refs/heads/trunk");
  state.status = "succeeded";
  for (let times = 0; times < 2; times++) {
    await remote.noteEnd(build);
    await remote.finish(build.id);
  }
  const title = "Sort $(touch /tmp/evil) the list";
  expect(await readFile(calls, "utf8")).toBe(["0", `slipway/${build.id}`, "trunk", title, ""].join("\n"));
  expect(await git(bare, "log", "-1", "--format=%s", `slipway/${build.id}`)).toBe("Ümlaut 1000");
  expect(logged).toEqual([`${build.id}: opened a pull request: address`]);
});

it("a pull request that was not opened when the server ended is opened by the next one", async () => {
  const { directory, build, remote, again, state, merge } = await setUp("fix", command);
  const begun = join(directory, "begun");
  await writeFile(join(directory, "open"), `#!/bin/sh\ntouch ${begun}; exec sleep 60\n`);
  await chmod(join(directory, "open"), 0o755);
  await merge(1000);
  state.status = "succeeded";
  await remote.noteEnd(build);
  const finishing = remote.finish(build.id);
  await expect.poll(() => readdir(directory)).toContain("begun");
  await remote[Symbol.asyncDispose]();
  await finishing;
  const opened = join(directory, "opened");
  await writeFile(join(directory, "open"), `#!/bin/sh\necho "$SLIPWAY_BUILD" >> ${opened}\n`);
  for (let servers = 0; servers < 2; servers++) await again().finish();
  expect(await readFile(opened, "utf8")).toBe(`${build.id}\n`);
});

it("a pull request that can not be opened is told with the program's own words", async () => {
  const { directory, build, remote, state, told, merge } = await setUp("new", command);
  await writeFile(join(directory, "open"), "#!/bin/sh\necho 'no such base' >&2; exit 3\n");
  await chmod(join(directory, "open"), 0o755);
  await merge(1000);
  state.status = "succeeded";
  await remote.noteEnd(build);
  await remote.finish(build.id);
  expect(told.at(-1)?.data).toEqual({ reason: "cannot open the pull request: no such base" });
});

it("the last push of a build that has ended is tried again, and what keeps it from being done can be read meanwhile", async () => {
  const { directory, bare, build, remote, again, state, logged, merge, end } = await setUp("new", (directory) => ({
    ...command(directory),
    finishWaitsMs: [0, 600_000],
  }));
  await writeFile(join(directory, "open"), "#!/bin/sh\necho https://example.com/1\n");
  await chmod(join(directory, "open"), 0o755);
  await merge(1000);
  state.status = "succeeded";
  await execute("mv", [bare, join(directory, "away")]);
  await remote.noteEnd(build);
  expect(await end()).toMatchObject({ pullRequest: null, remoteFailure: null });
  const finishing = remote.finish(build.id);
  await expect.poll(() => logged.length).toBe(2);
  const remoteFailure = expect.stringContaining("git push to the");
  expect(await end()).toMatchObject({ pullRequest: null, remoteFailure });
  await remote[Symbol.asyncDispose]();
  await finishing;
  await execute("mv", [join(directory, "away"), bare]);
  await again().finish();
  expect(await end()).toMatchObject({ pullRequest: "https://example.com/1", remoteFailure: null });
});

it("nothing of the remote's comes into the build's own repository, and no hook of its user's runs", async () => {
  const { directory, build, remote, merge } = await setUp("feature");
  const hooks = join(directory, "hooks");
  await mkdir(hooks);
  await writeFile(join(hooks, "pre-push"), `#!/bin/sh\ntouch ${join(directory, "ran")}\n`);
  await chmod(join(hooks, "pre-push"), 0o755);
  await writeFile(join(directory, "gitconfig"), `[core]\nhooksPath = ${hooks}\n`);
  await merge(1000);
  const own = join(directory, "builds", build.id, "repository.git");
  const before = await readdir(own, { recursive: true });
  await remote.push(build);
  expect(await readdir(own, { recursive: true })).toEqual(before);
  expect(await readdir(directory)).not.toContain("ran");
});
