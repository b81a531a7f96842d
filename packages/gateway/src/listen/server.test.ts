import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { request as httpRequest } from "node:http";
import { connect, createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { newId } from "@slipway/contract";
import { expect, test } from "vitest";
import { createRunTokens } from "../admit/run-tokens.ts";
import { ask, post, startTestGateway, type TestGateway, testKey, testTask } from "../testing/gateway.ts";
import { speakThen } from "../testing/upstream.ts";

const googlePath = "/v1beta/models/build:streamGenerateContent";

test("a token is taken as a bearer token, as x-api-key and as x-goog-api-key", async () => {
  await using set = await startTestGateway();
  expect(await set.post("/v1/messages", ask())).toMatchObject({ status: 200 });
  for (const name of ["x-api-key", "x-goog-api-key"]) {
    const headers = { [name]: set.run.token };
    expect(await post(`${set.url}/v1/messages`, ask(), { headers })).toMatchObject({ status: 200 });
  }
});

test("a request without a right token is refused, in the words of its dialect", async () => {
  await using set = await startTestGateway();
  const forged = `${set.run.token.slice(0, -1)}${set.run.token.endsWith("A") ? "B" : "A"}`;
  const elsewhere = createRunTokens("the secret of another").of(newId("run"));
  for (const token of [undefined, "", "slr_", "nonsense", forged, elsewhere, testKey, set.gateway.hostToken]) {
    for (const path of [
      "/v1/messages",
      "/v1/chat/completions",
      "/v1/responses",
      "/v1/models",
      "/run/hello",
      googlePath,
    ]) {
      const { status, text } = await post(`${set.url}${path}`, ask(), token === undefined ? {} : { token });
      expect(status).toBe(401);
      expect(text).toContain("run_token_invalid");
      expect(JSON.parse(text)).toBeTypeOf("object");
    }
  }
  expect(set.upstream.seen).toHaveLength(0);
});

test("a token of a run that is not open yet asks to come back", async () => {
  await using set = await startTestGateway();
  const token = createRunTokens("a secret of the tests").of(newId("run"));
  expect(await set.post("/v1/messages", ask(), { token })).toMatchObject({ status: 503 });
});

test("a token stays right when the gateway is made anew with the same secret", async () => {
  await using first = await startTestGateway();
  await using second = await startTestGateway();
  const [id] = /run_[0-9a-z]+/.exec(first.run.token) ?? [];
  await using again = await second.gateway.openRun({
    id: id as ReturnType<typeof newId<"run">>,
    roles: ["build"],
    budgetMicroUsd: 1_000_000,
    task: testTask,
  });
  expect(again.token).toBe(first.run.token);
  expect(await second.post("/v1/messages", ask(), { token: first.run.token })).toMatchObject({ status: 200 });
});

test("a connection of a sandbox is its run's, and another run's token is refused on it", async () => {
  await using set = await startTestGateway();
  await using other = await set.gateway.openRun({
    id: newId("run"),
    roles: ["build"],
    budgetMicroUsd: 1_000_000,
    task: testTask,
  });
  await using pipe = await openPipe(set);
  expect(await post(`${pipe.url}/v1/messages`, ask())).toMatchObject({ status: 200 });
  expect(await post(`${pipe.url}/v1/messages`, ask(), { token: set.run.token })).toMatchObject({ status: 200 });
  const stolen = await post(`${pipe.url}/v1/messages`, ask(), { token: other.token });
  expect(stolen.status).toBe(401);
  expect(await other.balance()).toMatchObject({ spentMicroUsd: 0 });
  expect(await set.run.balance()).toMatchObject({ spentMicroUsd: 2 * 759 });
});

test("the run channel is served for the run that asks", async () => {
  await using set = await startTestGateway();
  const { status, text } = await set.post("/run/hello", { version: 1, instance: "one" });
  expect(status).toBe(200);
  expect(JSON.parse(text)).toMatchObject({ task: { prompt: "Do it." }, next: 1 });
});

test("a body that is too large is refused and nothing is sent", async () => {
  await using set = await startTestGateway();
  const padding = "x".repeat(33 * 1024 * 1024);
  const { status, text } = await set.post("/v1/messages", ask({ padding }));
  expect(status).toBe(413);
  expect(text).toContain("too_large");
  expect(set.upstream.seen).toHaveLength(0);
});

test.each([
  ["is not JSON", "{"],
  ["is no object", "[]"],
  ["names no model", JSON.stringify({ messages: [] })],
  ["has an odd stream", JSON.stringify(ask({ stream: "yes" }))],
  ["is nested too deeply", `{"model":"build","messages":${"[".repeat(200_000)}${"]".repeat(200_000)}}`],
  ["has an odd limit", JSON.stringify(ask({ max_tokens: -1 }))],
])("a body that %s is refused and nothing is reserved", async (_, body) => {
  await using set = await startTestGateway();
  const { status, text } = await set.post("/v1/messages", body);
  expect(status).toBe(400);
  expect(text).toContain("invalid_request");
  expect(set.upstream.seen).toHaveLength(0);
});

test("a path or method that is not there is refused", async () => {
  await using set = await startTestGateway();
  expect(await set.post("/v1/embeddings", {})).toMatchObject({ status: 400 });
  expect(await get(set, "/v1/messages", set.run.token)).toMatchObject({ status: 400 });
});

test("clients that probe are answered without a token", async () => {
  await using set = await startTestGateway();
  expect(await get(set, "/")).toMatchObject({ status: 200 });
  expect(await get(set, "/health")).toMatchObject({ status: 200, body: { ok: true } });
});

test("only the host sees the counters", async () => {
  await using set = await startTestGateway();
  expect(await get(set, "/health", set.run.token)).toMatchObject({ body: { ok: true } });
  expect(await get(set, "/health", set.gateway.hostToken)).toMatchObject({
    body: { providers: [{ provider: "test" }] },
  });
});

test("the models of a run are listed for clients of every vendor", async () => {
  await using set = await startTestGateway({ roles: ["build", "plan"] });
  const { body } = await get(set, "/v1/models", set.run.token);
  expect(body).toMatchObject({ object: "list", data: [{ id: "build-model" }, { id: "plan-model" }], has_more: false });
});

test("tokens are counted by estimate, at no cost", async () => {
  await using set = await startTestGateway();
  const { text } = await set.post("/v1/messages/count_tokens?beta=true", ask());
  expect(JSON.parse(text).input_tokens).toBeGreaterThan(10);
  const image = { inlineData: { mimeType: "image/png", data: "A".repeat(100_000) } };
  const contents = [{ role: "user", parts: [{ text: "Say hello." }, image] }];
  const counted = await set.post("/v1beta/models/build:countTokens", { contents });
  expect(JSON.parse(counted.text).totalTokens).toBeLessThan(10_000);
  expect(set.upstream.seen).toHaveLength(0);
});

test("the gateway listens on a unix socket, also where a dead one has left its file", async () => {
  const directory = mkdtempSync(join(tmpdir(), "slipway-listen-"));
  const path = join(directory, "gateway.sock");
  writeFileSync(path, "");
  await using set = await startTestGateway();
  const listener = await set.gateway.listen({ path });
  const [response] = await once(httpRequest({ socketPath: path, path: "/health" }).end(), "response");
  expect(response.statusCode).toBe(200);
  response.resume();
  await listener.close();
  rmSync(directory, { recursive: true });
});

test("an address that is taken is said to be", async () => {
  await using set = await startTestGateway();
  const { hostname: host, port } = new URL(set.url);
  await expect(set.gateway.listen({ host, port: Number(port) })).rejects.toMatchObject({
    code: "provider_unavailable",
  });
});

test("disposing the gateway cuts what is under way and settles it", async () => {
  const set = await startTestGateway();
  const speaking = Promise.withResolvers<void>();
  set.upstream.behave(speakThen(() => speaking.resolve()));
  const streaming = set.post("/v1/messages", ask()).catch(() => ({ broken: true }));
  await speaking.promise;
  await set[Symbol.asyncDispose]();
  expect(await streaming).toMatchObject({ broken: true });
  expect(set.lines).toMatchObject([{ end: "cut" }]);
  expect(await set.run.balance()).toMatchObject({ reservedMicroUsd: 0 });
});

async function get(set: TestGateway, path: string, token?: string): Promise<{ status: number; body: unknown }> {
  const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
  const response = await fetch(`${set.url}${path}`, { headers });
  return { status: response.status, body: await response.json() };
}

/** A listener whose connections are all the run's sandbox. */
async function openPipe(set: TestGateway) {
  const [id] = /run_[0-9a-z]+/.exec(set.run.token) ?? [];
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    set.gateway.serve(socket, id as ReturnType<typeof newId<"run">>);
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as { port: number }).port}`,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  };
}

test("a connection that says nothing harms nobody", async () => {
  await using set = await startTestGateway();
  const { port } = new URL(set.url);
  const socket = connect(Number(port), "127.0.0.1");
  await once(socket, "connect");
  socket.write("POST /v1/messages HTTP/1.1\r\nhost: x\r\n");
  expect(await set.post("/v1/messages", ask())).toMatchObject({ status: 200 });
  socket.destroy();
});
