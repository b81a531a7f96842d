import { once } from "node:events";
import { expect, test, vi } from "vitest";
import { connectTo, readAll, readUntil, send, serveHttp, serveTcp, startEgress } from "./testing.ts";

const loopback = { cidrs: ["127.0.0.1/32"], domains: ["app.example"] };

/** An origin that keeps every byte it is sent, and answers each connection once. */
async function recorder() {
  const received: string[] = [];
  const server = await serveTcp((socket) => {
    socket.on("data", (chunk) => {
      received.push(chunk.toString("latin1"));
      socket.end("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    });
  });
  return { received, port: server.port, [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() };
}

const smuggled = "GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n";

test.each<[string, string]>([
  [
    "Content-Length and Transfer-Encoding",
    `Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${smuggled}`,
  ],
  [
    "Transfer-Encoding and Content-Length",
    `Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n${smuggled}`,
  ],
  ["two Content-Lengths", `Content-Length: 0\r\nContent-Length: 40\r\n\r\n${smuggled}`],
  ["a list of Content-Lengths", `Content-Length: 0, 40\r\n\r\n${smuggled}`],
  ["a signed Content-Length", `Content-Length: +0\r\n\r\n${smuggled}`],
  ["chunked that is not last", `Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n${smuggled}`],
  ["a disguised Transfer-Encoding", `Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n${smuggled}`],
  ["another Transfer-Encoding", `Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n${smuggled}`],
  ["a space before the colon", `Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n${smuggled}`],
  ["a folded header", `X-A: b\r\n Transfer-Encoding: chunked\r\nContent-Length : 0\r\n\r\n`],
  ["bare line feeds", `X-A: b\nTransfer-Encoding: chunked\n\n0\n\n${smuggled}`],
  ["a bare carriage return", `X-A: b\rTransfer-Encoding: chunked\r\n\r\n`],
  ["a null byte", `X-A: b\0c\r\n\r\n`],
  ["a chunk size past 64 bits", `Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\nabc`],
  ["a chunk size with junk", `Transfer-Encoding: chunked\r\n\r\n0x1\r\na\r\n0\r\n\r\n`],
])("smuggling by %s: the origin sees at most the one request, never the hidden one", async (_, rest) => {
  await using origin = await recorder();
  await using proxy = await startEgress({ policy: { ...loopback, ports: [origin.port] } });
  const answer = await send(
    proxy.socketPath,
    `POST http://app.example:${origin.port}/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n${rest}`,
  );
  expect(answer).toMatch(/^HTTP\/1.1 (400|501|502|413)|^$/);
  expect(origin.received.join("")).not.toContain("/smuggled");
  expect(origin.received.join("").match(/HTTP\/1\.1/g)?.length ?? 0).toBeLessThanOrEqual(1);
});

test("a body without framing is no body: what follows is a request of its own, checked like any", async () => {
  await using origin = await recorder();
  await using proxy = await startEgress({ policy: { ...loopback, ports: [origin.port] } });
  const answer = await send(
    proxy.socketPath,
    `GET http://app.example:${origin.port}/ HTTP/1.1\r\nHost: x\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n`,
  );
  expect(answer).toMatch(/^HTTP\/1.1 200 .*HTTP\/1.1 400 /s);
  expect(origin.received.join("")).not.toContain("/smuggled");
});

test("framing behind thousands of headers is not lost", async () => {
  await using origin = await recorder();
  await using proxy = await startEgress({ policy: { ...loopback, ports: [origin.port] } });
  const filler = "a:\r\n".repeat(4000);
  const body = "GET /smuggled HTTP/1.1\r\n\r\n";
  await send(
    proxy.socketPath,
    `GET http://app.example:${origin.port}/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n${filler}Content-Length: ${body.length}\r\n\r\n${body}`,
  );
  expect(origin.received.join("")).toMatch(/^GET \/ HTTP\/1.1\r\n.*Content-Length: 26\r\n/s);
});

test("an upgrade that the origin declines ends the connection: nothing follows it", async () => {
  await using origin = await recorder();
  await using proxy = await startEgress({ policy: { ...loopback, ports: [origin.port] } });
  const answer = await send(
    proxy.socketPath,
    `GET http://app.example:${origin.port}/ HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nContent-Length: 36\r\n\r\n${smuggled}`,
  );
  expect(answer).toMatch(/^HTTP\/1.1 200 OK/);
  expect(origin.received.join("")).not.toContain("/smuggled");
});

test.each(["h2c", "TLS/1.0"])("an upgrade to %s is ignored", async (protocol) => {
  await using origin = await recorder();
  await using proxy = await startEgress({ policy: { ...loopback, ports: [origin.port] } });
  await send(
    proxy.socketPath,
    `GET http://app.example:${origin.port}/ HTTP/1.1\r\nHost: x\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: ${protocol}\r\nHTTP2-Settings: AAMAAABkAAQ\r\n\r\n`.replace(
      "\r\n\r\n",
      "\r\nConnection: close\r\n\r\n",
    ),
  );
  expect(origin.received.join("")).not.toMatch(/upgrade|http2-settings/i);
});

test.each([
  [
    "an answer with both framings",
    "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
  ],
  ["an answer that is garbage", "\0\x01\x02garbage\r\n\r\n"],
  ["an answer with a header of 1 MB", `HTTP/1.1 200 OK\r\nX: ${"x".repeat(1 << 20)}\r\n\r\n`],
  ["no answer", ""],
])("%s gives 502", async (_, bytes) => {
  await using origin = await serveTcp((socket) => socket.once("data", () => socket.end(bytes, "latin1")));
  await using proxy = await startEgress({ policy: { ...loopback, ports: [origin.port] } });
  expect(await send(proxy.socketPath, `GET http://app.example:${origin.port}/ HTTP/1.1\r\nHost: x\r\n\r\n`)).toMatch(
    /^HTTP\/1.1 502 /,
  );
});

test.each([
  ["no method", "\r\n\r\n\r\n\r\nGARBAGE\r\n\r\n"],
  ["binary", Buffer.from(Array.from({ length: 4096 }, (_, i) => (i * 7 + 22) & 0xff))],
  ["TLS", Buffer.from("160301020001fc0303", "hex")],
  ["SOCKS4", Buffer.from([4, 1, 0, 80, 127, 0, 0, 1, 0])],
  ["HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"],
  ["HTTP/0.9", "GET /\r\n"],
  ["HTTP/3.0", "GET http://app.example/ HTTP/3.0\r\nHost: x\r\n\r\n"],
  ["a request without a Host", "GET http://app.example/ HTTP/1.1\r\n\r\n"],
  ["an origin form", "GET / HTTP/1.1\r\nHost: app.example\r\n\r\n"],
  ["another scheme", "GET ftp://app.example/ HTTP/1.1\r\nHost: x\r\n\r\n"],
  ["https without CONNECT", "GET https://app.example/ HTTP/1.1\r\nHost: x\r\n\r\n"],
  ["an authority with a user", "GET http://app.example@evil.example/ HTTP/1.1\r\nHost: x\r\n\r\n"],
  ["a backslash", "GET http://evil.example\\@app.example/ HTTP/1.1\r\nHost: x\r\n\r\n"],
  ["CONNECT without a port", "CONNECT app.example HTTP/1.1\r\n\r\n"],
  ["CONNECT to port 0", "CONNECT app.example:0 HTTP/1.1\r\n\r\n"],
  ["CONNECT to port 99999", "CONNECT app.example:99999 HTTP/1.1\r\n\r\n"],
  ["CONNECT to an address with a path", "CONNECT app.example:443/x HTTP/1.1\r\n\r\n"],
])("%s reaches nothing", async (_, bytes) => {
  await using proxy = await startEgress({ policy: { domains: ["app.example"] } });
  const socket = await connectTo(proxy.socketPath);
  socket.end(bytes);
  expect(await readAll(socket)).toMatch(/^HTTP\/1.1 (400|403) |^$/);
  expect(proxy.lookups).toEqual([]);
});

test("a header past the limit gives 431", async () => {
  await using proxy = await startEgress({ policy: loopback });
  const answer = await send(
    proxy.socketPath,
    `GET http://app.example/ HTTP/1.1\r\nHost: x\r\nX: ${"x".repeat(40_000)}\r\n\r\n`,
  );
  expect(answer).toMatch(/^HTTP\/1.1 431 /);
});

test.each([
  ["nothing", ""],
  ["half a request", "GET http://app.example/ HTTP/1.1\r\nHost: x\r\n"],
  ["half a SOCKS greeting", "\x05"],
])("a client that sends %s and waits is cut", async (_, bytes) => {
  await using proxy = await startEgress({ policy: loopback, limits: { headersMs: 100 } });
  const socket = await connectTo(proxy.socketPath);
  socket.write(bytes);
  expect(await readAll(socket)).toMatch(/^HTTP\/1.1 408 |^$/);
  socket.destroy();
  await vi.waitFor(() => expect(proxy.egress.stats().clients).toBe(0));
});

test("a body past the limit is refused by its length, or cut when it has none", async () => {
  await using origin = await serveHttp(
    (request, response) => void request.resume().on("end", () => response.end("all")),
  );
  await using proxy = await startEgress({ policy: { ...loopback, ports: [origin.port] }, limits: { bodyBytes: 1000 } });
  const head = `POST http://app.example:${origin.port}/ HTTP/1.1\r\nHost: x\r\n`;
  expect(await send(proxy.socketPath, `${head}Content-Length: 1001\r\n\r\n`)).toMatch(/^HTTP\/1.1 413 /);
  const chunk = `1f4\r\n${"x".repeat(500)}\r\n`;
  expect(await send(proxy.socketPath, `${head}Transfer-Encoding: chunked\r\n\r\n${chunk.repeat(3)}`)).toMatch(
    /^HTTP\/1.1 413 /,
  );
});

test("a flood of refused requests is reported a bounded number of times and counted exactly", async () => {
  await using proxy = await startEgress({ policy: loopback });
  const perClient = 20;
  await Promise.all(
    Array.from({ length: 50 }, async (_, i) => {
      for (let j = 0; j < perClient; j++)
        await send(proxy.socketPath, `CONNECT h${i}-${j}.evil.example:443 HTTP/1.1\r\n\r\n`);
    }),
  );
  const started = proxy.refusals.length;
  expect(proxy.egress.stats().refused).toBe(50 * perClient);
  await proxy.egress.close();
  expect(started).toBeLessThan(900);
  expect(proxy.refusals.reduce((sum, { count }) => sum + count, 0)).toBe(50 * perClient);
});

test("pipelined requests cannot open more connections than allowed", async () => {
  await using origin = await serveTcp(() => undefined);
  await using proxy = await startEgress({ policy: { ...loopback, ports: [origin.port] }, limits: { connections: 4 } });
  const client = await connectTo(proxy.socketPath);
  client.write(`GET http://app.example:${origin.port}/ HTTP/1.1\r\nHost: x\r\n\r\n`.repeat(50));
  await vi.waitFor(() => expect(origin.sockets.size).toBe(4));
  expect(proxy.egress.stats().upstream).toBe(4);
  client.destroy();
  await vi.waitFor(() => expect(proxy.egress.stats()).toMatchObject({ clients: 0, upstream: 0 }));
});

test("a client that goes away takes its connection to the outside with it", async () => {
  await using origin = await serveTcp(
    (socket) => void socket.once("data", () => socket.write("HTTP/1.1 200 OK\r\n\r\nendless")),
  );
  await using proxy = await startEgress({ policy: { ...loopback, ports: [origin.port] } });
  const client = await connectTo(proxy.socketPath);
  client.write(`GET http://app.example:${origin.port}/ HTTP/1.1\r\nHost: x\r\n\r\n`);
  await readUntil(client, "endless");
  client.destroy();
  await once(client, "close");
  await vi.waitFor(() => expect(proxy.egress.stats()).toMatchObject({ clients: 0, upstream: 0 }));
});
