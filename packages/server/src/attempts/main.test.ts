import { execFile } from "node:child_process";
import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { type BuildSource, newId } from "@slipway/contract";
import type { WorkingBuild } from "@slipway/engine";
import { projectPath, run } from "@slipway/sandbox";
import { createLocalProvider } from "@slipway/sandbox/local";
import { openDatabase, openStore } from "@slipway/store";
import { expect, it, onTestFinished } from "vitest";
import { createRepositories } from "../repositories.ts";
import { openBuildRepository } from "../repository/repository.ts";
import { bundleOf, isMainElsewhere, makeMain } from "./main.ts";
import { plannedBuild } from "./testing.ts";

const execute = promisify(execFile);
const build: WorkingBuild = {
  ...{ id: newId("bld"), account: "ada", project: "shop", mode: "feature", request: "Sort the list" },
};
const signal = AbortSignal.timeout(300_000);

async function setUp(source: BuildSource | null = null) {
  const directory = await mkdtemp("/var/tmp/slipway-main-");
  onTestFinished(() => rm(directory, { recursive: true, force: true, maxRetries: 10 }));
  await chmod(directory, 0o711);
  const provider = createLocalProvider({ stateDir: join(directory, "state"), environment: process.env });
  onTestFinished(() => provider[Symbol.asyncDispose]());
  const repository = await openBuildRepository({ directory: join(directory, "build"), environment: process.env });
  const make = (from = source, mode: WorkingBuild["mode"] = "feature") =>
    makeMain({ provider, repository, source: async () => from, clock: { now: () => 0 }, signal }, { ...build, mode });
  return { directory, provider, repository, make };
}

it("a new app begins with nothing, and is made once", async () => {
  const { make, repository } = await setUp();
  const made = await make(null, "new");
  expect(made).toMatchObject({ type: "main.made", key: "main", data: { commit: await repository.main() } });
  expect(await make(null, "new")).toEqual(made);
});

it("of servers on one database, main is the one's whose main was told first, and elsewhere for all others", async () => {
  const { directory, provider } = await setUp();
  await using database = openDatabase({ url: `file:${join(directory, "slipway.db")}` });
  const store = await openStore(database, { now: () => 0 });
  const planned = await plannedBuild(store, ["list"]);
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

it("a directory's last commit is main, and changes that are not committed are refused", async () => {
  const { make, directory, repository } = await setUp();
  const source = join(directory, "app");
  const git = (...args: string[]) => execute("git", ["-c", "user.name=A", "-c", "user.email=a@localhost", ...args]);
  await git("init", "-q", source);
  await writeFile(join(source, "list.txt"), "socks\n");
  await git("-C", source, "add", ".");
  await git("-C", source, "commit", "-qm", "Begin");
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
])("a build with %s can not begin", async (_, source) => {
  const { make } = await setUp();
  await expect(make(source)).rejects.toMatchObject({ code: "invalid_request" });
});

it("the files of a shallow clone come out of its sandbox as one commit", async () => {
  const { provider, repository } = await setUp();
  await using sandbox = await provider.create({});
  const script = `set -e; git init -q /tmp/origin; cd /tmp/origin; git config user.name A; git config user.email a@localhost
    for n in one two; do echo $n > list.txt; git add .; git commit -qm $n; done
    git clone -q --depth 1 file:///tmp/origin ${projectPath}`;
  expect(await run(sandbox, script)).toMatchObject({ exitCode: 0 });
  const { main, origin } = await repository.create({
    from: { bundle: await bundleOf(sandbox, signal), ref: "refs/heads/import" },
    atMs: 0,
  });
  expect((await repository.read(main, () => true)).get("list.txt")?.toString()).toBe("two\n");
  expect(origin?.branch).toBe("import");
  await run(sandbox, `rm -rf ${projectPath}; git init -q ${projectPath}`);
  await expect(bundleOf(sandbox, signal)).rejects.toMatchObject({ code: "repository_refused" });
});
