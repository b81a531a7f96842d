import { join } from "node:path";
import { createClient } from "@slipway/client";
import { type BuildId, buildViewSchema, newId } from "@slipway/contract";
import { report, type WorkingBuild } from "@slipway/engine";
import { expect, test } from "vitest";
import { localUser } from "../faces/principal.ts";
import { openWorld } from "../testing/world.ts";
import { openBuildRepository } from "../work/repository/repository.ts";

const address = "http://127.0.0.1:4000/?slipway_token=t0ken";

async function setUp() {
  const asked: unknown[] = [];
  let [isClosed, isNothing] = [false, false];
  let meanwhile = async () => {};
  const previews = {
    async open(build: WorkingBuild, commit: string) {
      await meanwhile();
      asked.push(["open", build, commit]);
      isClosed = false;
      return address;
    },
    async close({ id }: WorkingBuild) {
      asked.push(["close", id]);
      isClosed = true;
    },
    async end(build: BuildId) {
      asked.push(["end", build]);
    },
    addressOf: async () => (isClosed ? null : address),
    isNothing: async () => isNothing,
  };
  const server = await openWorld({ repository: "small", http: { previews: () => previews } });
  const { body } = await server.ask("POST", "/v1/builds", { body: { request: "a habit tracker" } });
  const { id } = buildViewSchema.parse(body);
  const whileOpening = (work: () => Promise<void>) => {
    meanwhile = work;
  };
  const loseServer = () => {
    isNothing = true;
  };
  const succeed = async () => {
    await server.tell(id);
    const end = { status: "succeeded", reason: "satisfied", endedAt: 1 } as const;
    await server.apply({ id }, { build: end });
  };
  return {
    server,
    id,
    main: server.main,
    asked,
    whileOpening,
    loseServer,
    succeed,
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  };
}

const refusal = (status: number, code: string) => ({ status, body: { error: { code } } });

test("a preview is closed, is gone from the build's view, and is opened again on main", async () => {
  await using world = await setUp();
  const { server, id, main, asked } = world;
  await server.tell(id, report("preview.ready", "ready", { address }));
  const { builds } = createClient({ socketPath: server.socketPath });
  expect(await builds.get(id)).toMatchObject({ preview: address });
  expect(await builds.closePreview(id)).toEqual({ build: id, address: null, instead: null });
  expect(await builds.get(id)).toMatchObject({ preview: null });
  expect(await builds.openPreview(id)).toEqual({ build: id, address, instead: null });
  expect(await builds.get(id)).toMatchObject({ preview: address });
  const build = { id, account: "local", project: "default", mode: "new", request: "a habit tracker" };
  expect(asked).toEqual([
    ["close", id],
    ["open", build, main],
  ]);
});

test("a preview that is ready only after its build has succeeded is in the build's view, and not before", async () => {
  await using world = await setUp();
  const { server, id, succeed } = world;
  await server.tell(id);
  expect(await server.builds.get(localUser, id)).toMatchObject({ preview: null });
  await succeed();
  const { status, preview, nothingToShow } = await server.builds.get(localUser, id);
  expect({ status, preview, nothingToShow }).toEqual({ status: "succeeded", preview: address, nothingToShow: null });
});

test("of a main without a dev server there is told what there is instead, and that there is nothing to show", async () => {
  await using world = await setUp();
  const { server, id, main, loseServer, succeed } = world;
  loseServer();
  const candidate = newId("cnd");
  const records = {
    merges: [{ build: id, candidate, task: "lib", position: 1, commit: main, parent: main, mergedAt: 3 }],
    gateResults: [
      ...(["failed", "passed"] as const).map((verdict, round) => ({
        build: id,
        candidate,
        gate: "tests",
        round,
        verdict,
        score: null,
        parts: [],
        findings: [],
        artefacts: [],
        durationMs: 1,
        costMicroUsd: 0,
        endedAt: round + 1,
      })),
    ],
  };
  const { builds } = createClient({ socketPath: server.socketPath });
  await server.tell(id);
  await server.apply({ id }, { records });
  const instead = {
    reason: expect.stringContaining("no dev server"),
    repository: expect.stringContaining(id),
    branch: "main",
    commit: main,
    gates: [{ name: "tests", verdict: "passed" }],
  };
  expect(await builds.openPreview(id)).toEqual({ build: id, address, instead });
  // A merge may still bring one.
  expect(await builds.get(id)).toMatchObject({ preview: null, nothingToShow: null });
  await succeed();
  expect(await builds.get(id)).toMatchObject({ preview: null, nothingToShow: instead.reason });
});

test("what is opened while its build is cancelled is ended with it", async () => {
  await using world = await setUp();
  const { server, id, asked, whileOpening } = world;
  whileOpening(async () => void (await server.ask("POST", `/v1/builds/${id}/cancel`)));
  expect(await server.ask("POST", `/v1/builds/${id}/preview`)).toMatchObject(refusal(409, "build_ended"));
  expect(asked.at(-1)).toEqual(["end", id]);
});

test("a build that was cancelled has none, nor one that is not there, nor one of a server without sandboxes", async () => {
  await using world = await setUp();
  const { server, id, asked } = world;
  await server.ask("POST", `/v1/builds/${id}/cancel`);
  for (const method of ["POST", "DELETE"]) {
    const of = (build: BuildId) => server.ask(method, `/v1/builds/${build}/preview`);
    expect(await of(id)).toMatchObject(refusal(409, "build_ended"));
    expect(await of(newId("bld"))).toMatchObject(refusal(404, "build_not_found"));
  }
  expect(asked).toEqual([]);
  await using bare = await openWorld({ http: {} });
  const { body } = await bare.ask("POST", "/v1/builds", { body: { request: "a habit tracker" } });
  expect(await bare.ask("POST", `/v1/builds/${body.id}/preview`)).toMatchObject(refusal(501, "capability_missing"));
});

test("before there is a main there is nothing to show", async () => {
  await using site = await openWorld({ repository: "small" });
  const environment = { PATH: process.env["PATH"] };
  const repository = await openBuildRepository({ directory: join(site.directory, "none"), environment });
  await using server = await openWorld({
    http: {
      gitOf: async () => repository,
      previews: () => ({
        open: async () => address,
        close: async () => {},
        end: async () => {},
        addressOf: async () => undefined,
        isNothing: async () => false,
      }),
    },
  });
  const { body } = await server.ask("POST", "/v1/builds", { body: { request: "a habit tracker" } });
  expect(await server.ask("POST", `/v1/builds/${body.id}/preview`)).toMatchObject(refusal(409, "not_ready"));
});
