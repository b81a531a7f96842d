import { createClient } from "@slipway/client";
import { branchesViewSchema, buildViewSchema, endAs, newId } from "@slipway/contract";
import { report } from "@slipway/engine";
import { expect, test } from "vitest";
import { openWorld } from "../testing/world.ts";
import { branch, newCandidate } from "../work/repository/testing.ts";

/** A build, and candidates of it as git has them. */
async function setUp() {
  const server = await openWorld({ repository: "small", http: {} });
  const { repository, main, sandbox, take } = server;
  const { body } = await server.ask("POST", "/v1/builds", { body: { request: "a habit tracker" } });
  const { id: build } = buildViewSchema.parse(body);
  await server.tell(build, report("main.made", "main", { commit: main, tree: await repository.treeOf(main) }));
  const offer = async (number: number) => {
    const id = newCandidate();
    const commit = await sandbox.commit({ files: { "list.txt": `${number}\n` }, parents: [main] });
    const { tree } = await take(sandbox.bundle(commit, { needs: [main] }), { id });
    const attempt = { task: "setup", attempt: 1, respawn: 0 };
    const offered = { ...attempt, candidate: id, offer: number, commit, tree };
    return { id, commit, offered: () => server.tell(build, report("candidate.offered", `candidate:${id}`, offered)) };
  };
  const returned = (commit: string) => {
    const outcome = { type: "conflict" as const, paths: ["list.txt"] };
    return server.tell(build, report("merge.tested", null, { base: main, commit, outcome }));
  };
  const path = `/v1/builds/${build}/branches`;
  const list = async () => branchesViewSchema.parse((await server.ask("GET", path)).body);
  return {
    server,
    repository,
    main,
    sandbox,
    build,
    path,
    list,
    offer,
    returned,
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  };
}

test("branches of candidates are kept until a person discards them", async () => {
  await using world = await setUp();
  const { server, build, repository, list, path } = world;
  expect((await list()).branches).toEqual([]);
  const { id, commit, offered } = await world.offer(1);
  await offered();
  await world.returned(commit);
  const { repository: where, branches } = await list();
  expect(where).toContain(build);
  expect(branches).toMatchObject([
    { id, commit, task: "setup", ref: `refs/candidates/${id}`, status: "rejected", reason: "conflict" },
  ]);
  const { builds } = createClient({ socketPath: server.socketPath });
  expect(await builds.branches(build)).toEqual({ repository: where, branches });
  expect(await builds.discardBranch(build, id)).toEqual(branches[0]);
  expect((await list()).branches).toEqual([]);
  expect((await repository.candidates()).size).toBe(0);
  expect(await server.ask("DELETE", `${path}/${id}`)).toMatchObject({
    status: 404,
    body: { error: { code: "branch_not_found" } },
  });
});

test("a branch that the merge queue has, or is about to have, is not discarded before the build has ended", async () => {
  await using world = await setUp();
  const { server, build, path, list } = world;
  const { id, offered } = await world.offer(1);
  const refused = { status: 409, body: { error: { code: "branch_in_use" } } };
  expect(await server.ask("DELETE", `${path}/${id}`)).toMatchObject(refused);
  await offered();
  expect((await list()).branches).toMatchObject([{ id, status: expect.stringMatching(/^(pending|verifying)$/) }]);
  expect(await server.ask("DELETE", `${path}/${id}`)).toMatchObject(refused);
  await server.ask("POST", `/v1/builds/${build}/cancel`);
  expect(await server.ask("DELETE", `${path}/${id}`)).toMatchObject({ status: 200, body: { id, status: "rejected" } });
});

test("a branch that its attempt has not offered is kept when the attempt ends, and may be discarded then", async () => {
  await using world = await setUp();
  const { server, build, repository, main, sandbox, path, list } = world;
  const asked = server.asked.find((item) => item.type === "attempt");
  if (asked === undefined) throw new Error("no attempt was asked for");
  const commit = await sandbox.commit({ files: { "list.txt": "1\n" }, parents: [main] });
  await repository.takeOpen(sandbox.bundle(commit, { needs: [main] }), { attempt: asked.id, ref: branch });
  const shown = { id: asked.id, attempt: asked.id, task: asked.task, commit, ref: `refs/open/${asked.id}` };
  expect((await list()).branches).toMatchObject([{ ...shown, status: "building" }]);
  const refused = { status: 409, body: { error: { code: "branch_in_use" } } };
  expect(await server.ask("DELETE", `${path}/${asked.id}`)).toMatchObject(refused);
  const end = endAs("checks_failed", "the tests fail");
  await server.tell(build, report("attempt.ended", "ended", { task: asked.task, attempt: 1, respawn: 0, end }));
  expect((await list()).branches).toMatchObject([{ ...shown, status: "unoffered" }]);
  expect(await server.ask("DELETE", `${path}/${asked.id}`)).toMatchObject({ status: 200, body: shown });
  expect((await list()).branches).toEqual([]);
});

test("there are no branches of a build that is not there, nor of what is no candidate", async () => {
  await using server = await openWorld({ http: {} });
  const unknown = { status: 404, body: { error: { code: "build_not_found" } } };
  expect(await server.ask("GET", `/v1/builds/${newId("bld")}/branches`)).toMatchObject(unknown);
  expect(await server.ask("DELETE", `/v1/builds/${newId("bld")}/branches/${newId("cnd")}`)).toMatchObject(unknown);
  const { body } = await server.ask("POST", "/v1/builds", { body: { request: "a habit tracker" } });
  const path = `/v1/builds/${body.id}/branches`;
  expect(await server.ask("GET", path)).toMatchObject({ status: 200, body: { repository: null, branches: [] } });
  for (const id of [newId("cnd"), "main", "..%2Fheads%2Fmain"]) {
    expect(await server.ask("DELETE", `${path}/${id}`)).toMatchObject({
      status: 404,
      body: { error: { code: "branch_not_found" } },
    });
  }
});
