import { once } from "node:events";
import { rmSync } from "node:fs";
import { createServer, type RequestListener } from "node:http";
import { createClient } from "@slipway/client";
import { type BuildId, type EventView, hasCode, newId } from "@slipway/contract";
import { report } from "@slipway/engine";
import { afterEach, describe, expect, test } from "vitest";
import { openWorld, type WorldWith } from "../testing/world.ts";
import type { HttpOptions } from "./testing.ts";

const servers: AsyncDisposable[] = [];
afterEach(async () => {
  for (const server of servers.splice(0)) await server[Symbol.asyncDispose]();
});

async function serve(options?: HttpOptions) {
  const server = await openWorld({ http: options ?? {} });
  servers.push(server);
  return { server, client: createClient({ socketPath: server.socketPath }) };
}

/** A server of another kind than ours, on loopback. */
async function serveOther(listener: RequestListener) {
  const server = createServer(listener).listen(0, "127.0.0.1");
  await once(server, "listening");
  servers.push({
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  });
  return createClient({ url: `http://127.0.0.1:${(server.address() as { port: number }).port}`, token: "secret" });
}

test("every route has its method", async () => {
  const { client, server } = await serve();
  const { builds } = client;
  expect(await client.server.health()).toMatchObject({ status: "ok" });
  const { id } = await builds.start({ request: "a habit tracker", hold: "both" });
  await server.tell(id);
  expect((await builds.intent(id)).status).toBe("open");
  expect((await builds.editIntent(id, { appType: "site" })).intent.appType).toBe("site");
  await builds.lock(id);
  await server.tell(id);
  expect((await builds.plan(id)).tasks).toHaveLength(3);
  expect((await builds.resume(id)).status).toBe("running");
  expect((await builds.pause(id)).status).toBe("paused");
  expect((await builds.setBudget(id, { budgetMicroUsd: 7_000_000 })).money.budgetMicroUsd).toBe(7_000_000);
  const raised = await builds.setBudget(id, { budgetMicroUsd: 8_000_000, resume: true });
  expect(raised).toMatchObject({ status: "running", money: { budgetMicroUsd: 8_000_000 } });
  await builds.pause(id);
  expect((await builds.costs(id)).by.task).toEqual([]);
  expect((await builds.list({ status: ["paused"], project: "default", limit: 1 })).builds).toMatchObject([{ id }]);
  expect((await builds.events(id, { after: 1, limit: 1 })).events).toMatchObject([{ sequence: 2 }]);
  expect(await builds.get(id)).toMatchObject({ id, status: "paused" });
  expect((await builds.cancel(id)).status).toBe("cancelled");
});

describe("events", () => {
  const collect = async (events: AsyncIterable<EventView>, upTo?: number) => {
    const numbers: number[] = [];
    for await (const { sequence } of events) if (numbers.push(sequence) === upTo) break;
    return numbers;
  };
  const cancel = (server: WorldWith<"http">, id: BuildId) => server.tell(id, report("order.cancel", "cancel", {}));

  test("are followed to the build's end, also when the server restarts in between", async () => {
    const { client, server } = await serve({ stages: [] });
    const { id } = await client.builds.start({ request: "x" });
    await server.tell(id);
    const events = client.builds.follow(id)[Symbol.asyncIterator]();
    expect((await events.next()).value).toMatchObject({ sequence: 1, type: "build.created" });
    await server.restart();
    await cancel(server, id);
    const rest = await collect({ [Symbol.asyncIterator]: () => events });
    const { lastEvent } = await client.builds.get(id);
    expect(rest).toEqual(Array.from({ length: lastEvent - 1 }, (_, index) => index + 2));
  });

  test("of a build that has ended come once, and the stream ends", async () => {
    const { client, server } = await serve({ stages: [] });
    const { id } = await client.builds.start({ request: "x" });
    await cancel(server, id);
    const { lastEvent } = await client.builds.get(id);
    expect(await collect(client.builds.follow(id))).toHaveLength(lastEvent);
    expect(await collect(client.builds.follow(id, { after: lastEvent - 1 }))).toEqual([lastEvent]);
    expect(await collect(client.builds.follow(id), 1)).toEqual([1]);
  });

  test("end by the reader's signal, and fail when the server stays away", async () => {
    const { client, server } = await serve({ stages: [] });
    const { id } = await client.builds.start({ request: "x" });
    await server.tell(id);
    const { lastEvent } = await client.builds.get(id);
    const reader = new AbortController();
    const events = client.builds.follow(id, { after: lastEvent - 1, signal: reader.signal })[Symbol.asyncIterator]();
    await events.next();
    const waiting = events.next();
    reader.abort();
    await expect(waiting).rejects.toSatisfy((error) => hasCode(error, "aborted"));
    // Listened to before it may fail, which may be before the server has ended.
    const left = expect(collect(client.builds.follow(id, { patienceMs: 0 }))).rejects.toSatisfy((error) =>
      hasCode(error, "server_unavailable"),
    );
    await server.stop();
    await left;
  });

  test("of a build that there is not are refused at once", async () => {
    const { client } = await serve();
    const left = collect(client.builds.follow(newId("bld")));
    await expect(left).rejects.toSatisfy((error) => hasCode(error, "build_not_found"));
  });

  test("that come twice or make no sense are not passed on", async () => {
    const event = (sequence: number) => JSON.stringify({ sequence, at: 1, type: "a.b", data: {} });
    const twice = await serveOther((_, answer) => {
      answer.writeHead(200, { "content-type": "text/event-stream" });
      answer.end(`: hi\n\ndata: ${event(1)}\n\ndata: ${event(1)}\n\ndata: ${event(2)}\n\nevent: done\ndata: {}\n\n`);
    });
    expect(await collect(twice.builds.follow(newId("bld")))).toEqual([1, 2]);
    const nonsense = await serveOther((_, answer) => void answer.end("data: {\n\n"));
    await expect(collect(nonsense.builds.follow(newId("bld")))).rejects.toSatisfy((error) =>
      hasCode(error, "internal"),
    );
  });
});

describe("a failure", () => {
  test("of the server is told by its code", async () => {
    const { client } = await serve();
    await expect(client.builds.get(newId("bld"))).rejects.toMatchObject({ code: "build_not_found", retry: "never" });
    await expect(client.builds.start({ request: "" })).rejects.toMatchObject({ code: "invalid_request" });
  });

  test("to reach it is told as such", async () => {
    const { client, server } = await serve();
    await server.stop();
    await expect(client.server.health()).rejects.toMatchObject({ code: "server_unavailable", retry: "later" });
    rmSync(server.socketPath, { force: true });
    await expect(client.server.health()).rejects.toThrow(/ENOENT/);
  });

  test("by the caller's signal is told as such", async () => {
    const { client } = await serve();
    await expect(client.server.health({ signal: AbortSignal.abort() })).rejects.toMatchObject({ code: "aborted" });
  });

  test("of something that is no server of ours is none of its codes", async () => {
    const other = await serveOther((request, answer) => {
      if (request.url === "/v1/health") answer.writeHead(200).end('{"hello":"world"}');
      else answer.writeHead(502).end("<html>");
    });
    await expect(other.server.health()).rejects.toMatchObject({ code: "internal" });
    await expect(other.builds.list()).rejects.toThrow(/502/);
  });

  test("does not carry the token to another address", async () => {
    const tokens: (string | undefined)[] = [];
    const other = await serveOther((request, answer) => {
      tokens.push(request.headers.authorization);
      answer.writeHead(307, { location: "/elsewhere" }).end();
    });
    await expect(other.server.health()).rejects.toMatchObject({ code: "server_unavailable" });
    expect(tokens).toEqual(["Bearer secret"]);
  });
});
