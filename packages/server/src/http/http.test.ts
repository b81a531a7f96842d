import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { apiLimits, type BuildId, buildViewSchema, healthSchema, microUsdPerUsd, newId } from "@slipway/contract";
import { report } from "@slipway/engine";
import { describe, expect, onTestFinished, test } from "vitest";
import { openWorld, type WorldWith } from "../testing/world.ts";
import { type HttpOptions, tasks } from "./testing.ts";

async function serve(options?: HttpOptions): Promise<WorldWith<"http">> {
  const server = await openWorld({ http: options ?? {} });
  onTestFinished(() => server[Symbol.asyncDispose]());
  return server;
}

const start = async (server: WorldWith<"http">, more: object = {}) => {
  const answer = await server.ask("POST", "/v1/builds", { body: { request: "a habit tracker", ...more } });
  expect(answer.status).toBe(201);
  return buildViewSchema.parse(answer.body);
};

const secret = { host: "api.example.com", header: "authorization", value: "Bearer t0p-5ecret" };

describe("the socket", () => {
  test("is its user's alone, and tells that the server is well", async () => {
    const server = await serve();
    expect(statSync(server.socketPath).mode & 0o777).toBe(0o600);
    const { status, body } = await server.ask("GET", "/v1/health");
    expect({ status, body }).toEqual({
      status: 200,
      body: { status: "ok", version: "0.0.0", pid: process.pid, models: [] },
    });
  });

  test("tells how the providers of models do", async () => {
    const usage = { input: 3, output: 2, cacheRead: 1, cacheWrite: 0 };
    const ends = { complete: 1, truncated: 0, cut: 0, failed: 1 };
    const counters = { requests: 2, inFlight: 0, ends, retries: 4, usage, microUsd: 7 };
    const models = [{ provider: "anthropic", ...counters, lastErrorCode: "model_timeout" }];
    const server = await serve({ models });
    const { body } = await server.ask("GET", "/v1/health");
    expect(healthSchema.parse(body).models).toEqual(models);
  });

  test("is free again after the server's end, streams or not", async () => {
    const server = await serve({ stages: [] });
    const { id } = await start(server);
    const stream = connect(server.socketPath);
    stream.write(`GET /v1/builds/${id}/events HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\n\r\n`);
    await new Promise((resolve) => stream.once("data", resolve));
    await server.restart();
    expect((await server.ask("GET", "/v1/health")).status).toBe(200);
  });
});

describe("a build", () => {
  test("goes from its request to its plan and shows itself", async () => {
    const server = await serve({ defaults: { slots: 3 } });
    const { id, settings } = await start(server, { hold: "plan", settings: { budgetMicroUsd: 5_000_000 } });
    expect(settings).toMatchObject({ slots: 3, budgetMicroUsd: 5_000_000, partition: "feature" });
    await server.tell(id);
    const { body } = await server.ask("GET", `/v1/builds/${id}`);
    expect(buildViewSchema.parse(body)).toMatchObject({
      id,
      status: "paused",
      reason: "user",
      request: "a habit tracker",
      planning: null,
      source: null,
      tasks: { pending: 3, merged: 0 },
      money: { budgetMicroUsd: 5_000_000, spentMicroUsd: 0, reservedMicroUsd: 0 },
    });
  });

  test("keeps its secrets in a file of its own, and shows them nowhere", async () => {
    const server = await serve();
    const view = await start(server, { secrets: [secret], hold: "plan" });
    await server.tell(view.id);
    const path = join(server.directory, "builds", view.id, "secrets.json");
    expect(JSON.parse(readFileSync(path, "utf8"))).toEqual([secret]);
    const shown = ["", "/intent", "/plan", "/costs", "/events"].map((part) => `/v1/builds/${view.id}${part}`);
    const answers = await Promise.all([...shown, "/v1/builds"].map((each) => server.ask("GET", each)));
    expect(JSON.stringify([view, answers, server.log])).not.toContain("t0p");
    const files = readdirSync(server.directory).filter((name) => name.startsWith("slipway.db"));
    expect(files).toContain("slipway.db");
    for (const name of files) expect(readFileSync(join(server.directory, name), "latin1")).not.toContain("t0p");
  });

  test("that is started again has the secrets of its first start, and another one under its id changes nothing", async () => {
    const server = await serve({ stages: [] });
    const { id } = await start(server, { secrets: [secret] });
    const path = join(server.directory, "builds", id, "secrets.json");
    await start(server, { id, secrets: [{ ...secret, value: "other" }] });
    const body = { request: "another app", id, secrets: [{ ...secret, value: "other" }] };
    expect((await server.ask("POST", "/v1/builds", { body })).body.error.code).toBe("idempotency_conflict");
    expect(JSON.parse(readFileSync(path, "utf8"))).toEqual([secret]);
  });

  test("that is held for its plan begins no attempt before it is resumed", async () => {
    const server = await serve();
    const { id } = await start(server, { hold: "plan" });
    await server.tell(id);
    expect(server.asked).toEqual([]);
    const { body } = await server.ask("POST", `/v1/builds/${id}/resume`);
    expect(body).toMatchObject({ status: "running", tasks: { assigned: 1, pending: 2 } });
    expect(body.attempts).toMatchObject([{ task: "setup", status: "starting", level: null, sandbox: null }]);
    expect(server.asked).toMatchObject([{ type: "attempt", task: "setup" }]);
  });

  test("that is started again under its id is the one that is there", async () => {
    const server = await serve({ stages: [] });
    const id = newId("bld");
    await start(server, { id });
    await start(server, { id });
    expect((await server.ask("GET", "/v1/builds")).body.builds).toHaveLength(1);
    const other = await server.ask("POST", "/v1/builds", { body: { id, request: "something else" } });
    expect(other).toMatchObject({ status: 409, body: { error: { code: "idempotency_conflict" } } });
  });

  test("keeps the repository that it works on", async () => {
    const server = await serve({ stages: [] });
    const { source } = await start(server, { mode: "fix", source: { directory: "/srv/app" } });
    expect(source).toEqual({ directory: "/srv/app" });
  });

  test("is kept when the bell is not heard", async () => {
    const server = await serve({ deaf: true });
    const { id, status } = await start(server);
    expect(status).toBe("planning");
    const { body } = await server.ask("POST", `/v1/builds/${id}/cancel`);
    expect(body.status).toBe("planning");
    expect(await server.store.events.read(id, 0)).toMatchObject([{ type: "build.created" }, { type: "order.cancel" }]);
  });
});

describe("lists", () => {
  test("come newest first, in pages, by status", async () => {
    const server = await serve({ stages: [] });
    const ids: BuildId[] = [];
    for (let n = 0; n < 3; n++) {
      const id = newId("bld", 1_700_000_000_000 + n);
      ids.unshift(id);
      await start(server, { id });
    }
    const first = (await server.ask("GET", "/v1/builds?limit=2")).body;
    expect(first.builds.map(({ id }: { id: string }) => id)).toEqual(ids.slice(0, 2));
    const second = (await server.ask("GET", `/v1/builds?limit=2&before=${first.next}`)).body;
    expect(second).toMatchObject({ builds: [{ id: ids[2] }], next: null });
    await server.ask("POST", `/v1/builds/${ids[1]}/cancel`);
    const cancelled = (await server.ask("GET", "/v1/builds?status=cancelled,failed")).body;
    expect(cancelled.builds).toMatchObject([{ id: ids[1], status: "cancelled", reason: "cancelled" }]);
  });
});

describe("orders", () => {
  test("pause, resume and cancel, each with its effect in the answer", async () => {
    const server = await serve();
    const { id } = await start(server);
    await server.tell(id);
    const order = async (name: string) => (await server.ask("POST", `/v1/builds/${id}/${name}`)).body.status;
    expect([await order("pause"), await order("resume"), await order("cancel")]).toEqual([
      ...["paused", "running", "cancelled"],
    ]);
  });

  test("count once under their key", async () => {
    const server = await serve();
    const { id } = await start(server);
    // What it asks for at its start is answered while it is driven: only then does its status stand.
    await server.tell(id);
    const headers = { "idempotency-key": "pause-1" };
    await server.ask("POST", `/v1/builds/${id}/pause`, { headers });
    await server.ask("POST", `/v1/builds/${id}/resume`);
    const { body } = await server.ask("POST", `/v1/builds/${id}/pause`, { headers });
    expect(body.status).toBe("running");
  });

  test("to a build that has ended are refused, but for a cancel of a cancelled one", async () => {
    const server = await serve();
    const { id } = await start(server);
    await server.ask("POST", `/v1/builds/${id}/cancel`);
    expect((await server.ask("POST", `/v1/builds/${id}/cancel`)).status).toBe(200);
    const late = await server.ask("POST", `/v1/builds/${id}/resume`);
    expect(late).toMatchObject({ status: 409, body: { error: { code: "build_ended" } } });
  });

  test("raise the budget, and never below what is spent", async () => {
    const server = await serve();
    const { id } = await start(server);
    const run = newId("run");
    await server.store.ledger.open({ id: run, build: id, budgetMicroUsd: 100 * microUsdPerUsd });
    const spent = {
      request: "r1",
      microUsd: 3_000_000,
      provider: "scripted",
      end: "complete",
      estimated: false,
    } as const;
    await server.store.ledger.reserve({ request: "r1", account: run, holder: "s", kind: "model", microUsd: 3_000_000 });
    await server.store.ledger.settle(spent);
    const budget = (budgetMicroUsd: unknown) =>
      server.ask("PATCH", `/v1/builds/${id}/budget`, { body: { budgetMicroUsd } });
    expect((await budget(200_000_000)).body.money).toMatchObject({
      budgetMicroUsd: 200_000_000,
      spentMicroUsd: 3_000_000,
    });
    expect(await budget(2_000_000)).toMatchObject({ status: 400, body: { error: { code: "invalid_budget" } } });
    for (const wrong of [0, -1, 1.5, "5", null]) {
      expect(await budget(wrong)).toMatchObject({ status: 400, body: { error: { code: "invalid_request" } } });
    }
    const { body } = await server.ask("GET", `/v1/builds/${id}/costs`);
    expect(body).toMatchObject({
      money: { spentMicroUsd: 3_000_000 },
      by: { provider: [{ of: "scripted", spentMicroUsd: 3_000_000, requests: 1 }], task: [{ of: null }] },
    });
  });
});

describe("the intent", () => {
  const held = async () => {
    const server = await serve();
    const { id } = await start(server, { hold: "both" });
    await server.tell(id);
    return { server, id, path: `/v1/builds/${id}/intent` };
  };

  test("waits for its user, is edited part by part, and goes on when it is locked", async () => {
    const { server, id, path } = await held();
    expect((await server.ask("GET", `/v1/builds/${id}`)).body.planning).toMatchObject({ stage: "lock", step: "held" });
    await Promise.all([
      server.ask("PATCH", path, { body: { coreValue: "One look is enough" } }),
      server.ask("PATCH", path, { body: { appType: "phone app" } }),
    ]);
    expect((await server.ask("GET", path)).body).toMatchObject({
      status: "open",
      intent: { coreValue: "One look is enough", appType: "phone app", request: "a habit tracker" },
    });
    expect((await server.ask("POST", `/v1/builds/${id}/lock`)).status).toBe(200);
    await server.tell(id);
    const { body } = await server.ask("GET", path);
    expect(body).toMatchObject({ status: "locked", hash: expect.stringMatching(/^sha256:/) });
    expect((await server.ask("POST", `/v1/builds/${id}/lock`)).status).toBe(200);
    const late = await server.ask("PATCH", path, { body: { appType: "site" } });
    expect(late).toMatchObject({ status: 409, body: { error: { code: "intent_locked" } } });
  });

  test.each([
    ["a part that there is not", { title: "x" }],
    ["the request", { request: "something else" }],
    ["too few criteria", { criteria: [] }],
    ["text for a list", { antiPatterns: "none" }],
    ["no object", ["x"]],
  ])("refuses %s", async (_, body) => {
    const { server, path } = await held();
    expect(await server.ask("PATCH", path, { body })).toMatchObject({
      status: 400,
      body: { error: { code: "invalid_request" } },
    });
    expect((await server.ask("GET", path)).body.intent.appType).toBe("web app");
  });

  test("is not there before the draft, nor is the plan", async () => {
    const server = await serve({ stages: [] });
    const { id } = await start(server, { hold: "intent" });
    for (const [method, part] of [
      ...[
        ["GET", "intent"],
        ["GET", "plan"],
        ["POST", "lock"],
      ],
    ] as const) {
      const answer = await server.ask(method, `/v1/builds/${id}/${part}`);
      expect(answer).toMatchObject({ status: 409, body: { error: { code: "not_ready", retry: "later" } } });
    }
  });
});

test("the plan has its order, its parts, its critical path and its totals", async () => {
  const server = await serve();
  const { id } = await start(server, { hold: "plan", settings: { partition: "phase" } });
  await server.tell(id);
  const { body } = await server.ask("GET", `/v1/builds/${id}/plan`);
  expect(body).toMatchObject({
    mode: "new",
    round: 1,
    partition: "phase",
    parts: [
      { name: "phase-001", tasks: ["setup"] },
      { name: "phase-002", tasks: ["list", "store"] },
    ],
    criticalPath: { tasks: ["setup", "list"], minutes: 40 },
    totals: { minutes: 60, usd: 4.5, computeUsd: expect.closeTo(1.3) },
  });
  expect(body.tasks).toEqual([tasks[0], tasks[1], tasks[2]]);
});

describe("events", () => {
  test("come in pages without a gap, without documents and without what the lock compiled", async () => {
    const server = await serve();
    const { id } = await start(server);
    await server.tell(id);
    await server.ask("POST", `/v1/builds/${id}/cancel`);
    const seen = [];
    for (let after = 0, ended = false; !ended; ) {
      const { body } = await server.ask("GET", `/v1/builds/${id}/events?after=${after}&limit=3`);
      seen.push(...body.events);
      ({ next: after, ended } = body);
    }
    expect(seen.map(({ sequence }) => sequence)).toEqual(seen.map((_, index) => index + 1));
    expect(seen).toContainEqual(expect.objectContaining({ type: "plan.made", data: { tasks: 3 } }));
    expect(seen).toContainEqual(
      expect.objectContaining({ type: "intent.locked", data: { criteria: 5, workflows: 2, hash: expect.any(String) } }),
    );
    expect(JSON.stringify(seen)).not.toContain("largestPaintMs");
  });

  test("are streamed with their numbers, from where the reader was, until the build ends", async () => {
    const server = await serve({ stages: [] });
    const { id } = await start(server);
    const headers = { accept: "text/event-stream", "last-event-id": "1" };
    const streamed = server.ask("GET", `/v1/builds/${id}/events`, { headers });
    await server.tell(id, report("order.cancel", "x", {}));
    const { status, headers: answered, body } = await streamed;
    expect({ status, type: answered["content-type"] }).toEqual({ status: 200, type: "text/event-stream" });
    expect(body).not.toMatch(/^id: 1$/m);
    expect([...body.matchAll(/^id: (\d+)$/gm)].map(([, number]) => Number(number))).toEqual(
      Array.from({ length: (await server.store.builds.get(id)).lastEvent - 1 }, (_, index) => index + 2),
    );
    expect(body).toMatch(/event: done\ndata: {"status":"cancelled","reason":"cancelled"}\n\n$/);
  });
});

test("a reader of events that goes away is not waited for", async () => {
  const server = await serve({ stages: [] });
  const { id } = await start(server);
  const left = Promise.withResolvers<void>();
  const { follow } = server.builds;
  const watched = async (...given: Parameters<typeof follow>) => {
    given[3].addEventListener("abort", () => left.resolve());
    return await follow(...given);
  };
  Object.assign(server.builds, { follow: watched });
  const reader = connect(server.socketPath);
  reader.write(`GET /v1/builds/${id}/events HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\n\r\n`);
  await new Promise((resolve) => reader.once("data", resolve));
  reader.destroy();
  await left.promise;
});

describe("bad input", () => {
  test.each<[string, unknown]>([
    ["no body", undefined],
    ["no JSON", "{"],
    ["no object", []],
    ["no request", {}],
    ["an empty request", { request: " \u0000\n" }],
    ["an endless request", { request: "x".repeat(20_001) }],
    ["a field that there is not", { request: "x", priority: 5 }],
    ["an unknown mode", { request: "x", mode: "rewrite" }],
    ["a feature without a repository", { request: "x", mode: "feature" }],
    ["a new app with a repository", { request: "x", source: { directory: "/srv" } }],
    ["a directory that is relative", { request: "x", mode: "fix", source: { directory: "app" } }],
    ["an address that is an option", { request: "x", mode: "fix", source: { repository: "--upload-pack=sh" } }],
    ["an address that runs a program", { request: "x", mode: "fix", source: { repository: "ext::sh -c id" } }],
    ["a budget of nothing", { request: "x", settings: { budgetMicroUsd: 0 } }],
    ["more slots than there can be", { request: "x", settings: { slots: 100_000 } }],
    ["more workers than there can be", { request: "x", settings: { workers: 5 } }],
    ["an id that is none", { request: "x", id: "bld_1" }],
    ["a project that is a path", { request: "x", project: "../x" }],
    ["a secret without a host", { request: "x", secrets: [{ header: "x-key", value: secret.value }] }],
    ["a secret for all hosts below a name", { request: "x", secrets: [{ ...secret, host: "*.example.com" }] }],
    ["a secret whose name is no header", { request: "x", secrets: [{ ...secret, header: "API KEY" }] }],
    ["a secret that frames the message", { request: "x", secrets: [{ ...secret, header: "Host" }] }],
    ["a secret of two lines", { request: "x", secrets: [{ ...secret, value: `${secret.value}\r\nx: y` }] }],
    ["a secret that is too large", { request: "x", secrets: [{ ...secret, value: secret.value.padEnd(8193) }] }],
    ["a secret that is named twice", { request: "x", secrets: [secret, { ...secret, header: "Authorization" }] }],
    [
      "more secrets than a sandbox can have",
      { request: "x", secrets: Array.from({ length: 33 }, (_, index) => ({ ...secret, header: `x-${index}` })) },
    ],
  ])("%s starts no build", async (_, body) => {
    const server = await serve();
    const { status, body: answer } = await server.ask("POST", "/v1/builds", { body });
    expect({ status, code: answer.error.code }).toEqual({ status: 400, code: "invalid_request" });
    expect(answer.error).toMatchObject({ message: expect.any(String), action: expect.any(String) });
    expect((await server.ask("GET", "/v1/builds")).body.builds).toEqual([]);
    expect(JSON.stringify(answer)).not.toContain("t0p");
    expect(existsSync(join(server.directory, "builds"))).toBe(false);
  });

  test("a body that is too large is refused, said or streamed", async () => {
    const server = await serve();
    const body = JSON.stringify({ request: "x".repeat(apiLimits.maxBodyBytes) });
    for (const headers of [{ "content-length": String(body.length) }, { "transfer-encoding": "chunked" }]) {
      const answer = await server.ask("POST", "/v1/builds", { body, headers });
      expect(answer).toMatchObject({ status: 413, body: { error: { code: "too_large" } } });
    }
  });

  test.each([
    ["GET", "/v1/builds/bld_00000000000000000000"],
    ["GET", "/v1/builds/bld_00000000000000000000/costs"],
    ["GET", "/v1/builds/bld_00000000000000000000/events"],
    ["POST", "/v1/builds/bld_00000000000000000000/pause"],
    ["GET", "/v1/builds/nothing"],
    ["POST", "/v1/builds/..%2f..%2fx/cancel"],
  ])("%s %s names no build", async (method, path) => {
    const answer = await (await serve()).ask(method, path);
    expect(answer).toMatchObject({ status: 404, body: { error: { code: "build_not_found" } } });
  });

  test("a stream of a build that there is not is refused before it begins", async () => {
    const headers = { accept: "text/event-stream" };
    const answer = await (await serve()).ask("GET", `/v1/builds/${newId("bld")}/events`, { headers });
    expect(answer).toMatchObject({ status: 404, body: { error: { code: "build_not_found" } } });
  });

  test.each(["?limit=0", "?limit=1000", "?limit=x", "?status=asleep", "?before=x", "?page=2"])(
    "a list %s is refused",
    async (query) => {
      const answer = await (await serve()).ask("GET", `/v1/builds${query}`);
      expect(answer).toMatchObject({ status: 400, body: { error: { code: "invalid_request" } } });
    },
  );

  test("numbers of events and keys that are none are refused", async () => {
    const server = await serve({ stages: [] });
    const { id } = await start(server);
    const events = `/v1/builds/${id}/events`;
    for (const after of ["-1", "x", "1e3", "9".repeat(16), "500"]) {
      expect((await server.ask("GET", `${events}?after=${after}`)).status).toBe(400);
      const headers = { accept: "text/event-stream", "last-event-id": after };
      expect((await server.ask("GET", events, { headers })).status).toBe(400);
    }
    const headers = { "idempotency-key": "a b" };
    expect((await server.ask("POST", `/v1/builds/${id}/pause`, { headers })).status).toBe(400);
  });

  test.each([
    ["GET", "/"],
    ["GET", "/v1"],
    ["DELETE", "/v1/builds/{id}"],
    ["POST", "/v1/builds/{id}/explode"],
  ])("%s %s is no route", async (method, pattern) => {
    const path = pattern.replace("{id}", newId("bld"));
    const answer = await (await serve()).ask(method, path);
    expect(answer).toMatchObject({ status: 404, body: { error: { code: "route_not_found" } } });
  });

  test("a defect is told to the log, not to the caller", async () => {
    const server = await serve();
    const { id } = await start(server);
    await server.tell(id);
    server.store.ledger.balance = () => Promise.reject(new Error("secret: /etc/passwd"));
    const { status, body } = await server.ask("GET", `/v1/builds/${id}`);
    expect({ status, code: body.error.code }).toEqual({ status: 500, code: "internal" });
    expect(JSON.stringify(body)).not.toContain("secret");
    expect(server.log.join()).toContain("secret: /etc/passwd");
  });
});
