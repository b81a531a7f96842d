import { createClient } from "@slipway/client";
import { apiLimits, buildViewSchema, newId } from "@slipway/contract";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openWorld } from "../testing/world.ts";
import { moveMain } from "../work/merging/move-main.ts";

const signal = new AbortController().signal;
const tooLarge = "x".repeat(apiLimits.maxFileBytes + 1);

let world: Awaited<ReturnType<typeof setUp>>;
beforeAll(async () => {
  world = await setUp();
}, 60_000);
afterAll(() => world[Symbol.asyncDispose]());

/** A build whose main has two merges, and a candidate that is not merged. */
async function setUp() {
  const server = await openWorld({
    repository: { "README.md": "# App\n", "src/old.txt": "one\ntwo\nthree\n" },
    http: {},
  });
  const { repository, main: began, sandbox } = server;
  const { body } = await server.ask("POST", "/v1/builds", { body: { request: "a habit tracker" } });
  const { id: build } = buildViewSchema.parse(body);
  const merge = async (tree: string) => {
    const from = await repository.main();
    const to = await repository.commit({ tree, parents: [from], message: "Merge", atMs: 0 });
    const work = { type: "merge", candidate: newId("cnd"), task: "list", from, to, tree } as const;
    const { data } = await moveMain(repository, work, signal);
    return { commit: to, data };
  };
  const change = async (files: Readonly<Record<string, string | Buffer | null>>) =>
    await server.offer(await sandbox.commit({ files, parents: [began] }));
  const moved = { "src/old.txt": null, "src/new.txt": "one\ntwo\nthree\n" };
  const first = await merge((await change({ ...moved, "src/list.ts": "export {};\n" })).tree);
  const { tree } = await change({
    ...moved,
    "src/list.ts": "export const list = [];\n",
    "README.md": null,
    "big.txt": tooLarge,
    "logo.png": Buffer.from([0x89, 0x50, 0, 1]),
    "latin.txt": Buffer.from([0xe9, 0x0a]),
    "-x *": "odd\n",
  });
  const link = await sandbox.object("blob", "src/new.txt");
  const entries = `${await sandbox.git(["ls-tree", tree])}120000 blob ${link}\tnow\n`;
  const made = (await sandbox.git(["mktree"], entries)).toString().trim();
  const withLink = await sandbox.object("tree", await sandbox.git(["cat-file", "tree", made]));
  const offered = await server.offer(await sandbox.commit({ tree: withLink, parents: [began] }));
  const second = await merge(offered.tree);
  const { commit: candidate } = await change({ "secret.txt": "not on main\n" });
  const path = `/v1/builds/${build}/files`;
  return {
    server,
    build,
    path,
    began,
    first,
    second,
    candidate,
    client: createClient(server).builds,
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  };
}

test("a merge tells which files it changes, and they are all there to be read at its commit", async () => {
  const { client, build, began, first, second } = world;
  expect(first.data).toMatchObject({
    merged: true,
    main: { commit: first.commit },
    fileCount: 2,
    files: [
      { path: "src/list.ts", change: "added" },
      { path: "src/new.txt", change: "renamed", from: "src/old.txt" },
    ],
  });
  const told = await client.files(build, { since: first.commit });
  expect(told).toMatchObject({ commit: second.commit, next: null });
  expect(told.files.map(({ path, change }) => `${change} ${path}`)).toEqual([
    ...["added -x *", "deleted README.md", "added big.txt", "added latin.txt", "added logo.png", "added now"],
    "changed src/list.ts",
  ]);
  expect(told.files.find(({ path }) => path === "README.md")?.blob).toBe(null);
  expect((await client.files(build, { commit: began })).files).toMatchObject([
    ...[{ path: "README.md", change: "added" }, { path: "src/old.txt" }],
  ]);
  const read = (path: string, commit?: string) => client.file(build, { path, ...(commit && { commit }) });
  expect(await read("src/list.ts")).toMatchObject({ commit: second.commit, content: "export const list = [];\n" });
  expect(await read("src/list.ts", first.commit)).toMatchObject({
    commit: first.commit,
    path: "src/list.ts",
    type: "file",
    bytes: 11,
    content: "export {};\n",
  });
  expect(await read("-x *")).toMatchObject({ content: "odd\n" });
  expect(await read("README.md", began)).toMatchObject({ content: "# App\n" });
});

test("files come in pages, in the order of their paths", async () => {
  const { client, build } = world;
  const paths: string[] = [];
  for (let after: string | null | undefined; after !== null; ) {
    const page = await client.files(build, { limit: 3, ...(after !== undefined && { after }) });
    expect(page.files.length).toBeLessThanOrEqual(3);
    paths.push(...page.files.map(({ path }) => path));
    after = page.next;
  }
  expect(paths).toEqual([...["-x *", "big.txt", "latin.txt", "logo.png", "now", "src/list.ts", "src/new.txt"]]);
});

test("what is no text or is too large is named by its blob, and a link is not followed", async () => {
  const { client, build } = world;
  const blob = expect.stringMatching(/^[0-9a-f]{40}$/);
  const read = (path: string) => client.file(build, { path });
  expect(await read("big.txt")).toMatchObject({ type: "file", blob, bytes: tooLarge.length, content: null });
  expect(await read("logo.png")).toMatchObject({ blob, bytes: 4, content: null });
  expect(await read("latin.txt")).toMatchObject({ blob, bytes: 2, content: null });
  expect(await read("now")).toMatchObject({ type: "link", content: "src/new.txt" });
  await expect(read("now/list.ts")).rejects.toMatchObject({ code: "file_not_found" });
});

test.each([
  ["../../etc/passwd", "invalid_request"],
  ["src/../README.md", "invalid_request"],
  ["/etc/passwd", "invalid_request"],
  [".git/config", "invalid_request"],
  ["src/.GIT/config", "invalid_request"],
  ["src//list.ts", "invalid_request"],
  ["a\nb", "invalid_request"],
  ["", "invalid_request"],
  ["src", "not_a_file"],
  ["secret.txt", "file_not_found"],
  [":(glob)src/**", "file_not_found"],
  ["src/*", "file_not_found"],
])("there is no file %j", async (path, code) => {
  await expect(world.client.file(world.build, { path })).rejects.toMatchObject({ code });
});

test("commits that are not of main show nothing", async () => {
  const { client, server, build, path, candidate, first } = world;
  for (const commit of [candidate, "1".repeat(40)]) {
    const unknown = { code: "commit_not_found" };
    await expect(client.files(build, { commit })).rejects.toMatchObject(unknown);
    await expect(client.files(build, { since: commit })).rejects.toMatchObject(unknown);
    await expect(client.file(build, { commit, path: "README.md" })).rejects.toMatchObject(unknown);
  }
  for (const query of [
    `after=${"x".repeat(2000)}`,
    "commit=HEAD",
    "commit=--all",
    `commit=${first.commit}^`,
    "limit=1001",
    "more=1",
  ]) {
    expect(await server.ask("GET", `${path}?${query}`)).toMatchObject({ status: 400 });
  }
});

test("a build without a main has no files yet, and one that is not there none at all", async () => {
  await using server = await openWorld({ http: {} });
  const { body } = await server.ask("POST", "/v1/builds", { body: { request: "a habit tracker" } });
  expect(await server.ask("GET", `/v1/builds/${body.id}/files`)).toMatchObject({
    status: 409,
    body: { error: { code: "not_ready" } },
  });
  expect(await server.ask("GET", `/v1/builds/${newId("bld")}/files`)).toMatchObject({ status: 404 });
});
