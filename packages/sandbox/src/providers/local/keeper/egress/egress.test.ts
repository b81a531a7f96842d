import { once } from "node:events";
import { stat } from "node:fs/promises";
import { createConnection } from "node:net";
import { expect, test, vi } from "vitest";
import {
  connectTo,
  openTunnel,
  policyOf,
  readAll,
  readUntil,
  send,
  serveHttp,
  serveTcp,
  startEgress,
} from "./testing.ts";

const loopback = { cidrs: ["127.0.0.1/32"] };

function get(url: string, ...headers: string[]): string {
  return [`GET ${url} HTTP/1.1`, "Host: x", "Connection: close", ...headers, "", ""].join("\r\n");
}

test("a plain request reaches an allowed host with the Host of its address", async () => {
  await using origin = await serveHttp((request, response) =>
    response.end(`${request.method} ${request.url} ${request.headers.host}`),
  );
  await using proxy = await startEgress({ policy: { ...loopback, domains: ["app.example"], ports: [origin.port] } });
  const answer = await send(proxy.socketPath, get(`http://app.example:${origin.port}/a?b=c`, "Host: evil.example"));
  expect(answer).toContain("200 OK");
  expect(answer).toContain(`GET /a?b=c app.example:${origin.port}`);
  expect(proxy.lookups).toEqual(["app.example"]);
});

test("hop-by-hop headers stay on their side", async () => {
  await using origin = await serveHttp((request, response) => {
    response.setHeader("Keep-Alive", "timeout=99");
    response.setHeader("Proxy-Authenticate", "Basic");
    response.setHeader("X-Kept", "yes");
    response.end(JSON.stringify(request.rawHeaders));
  });
  await using proxy = await startEgress({ policy: { ...loopback, domains: ["app.example"], ports: [origin.port] } });
  const answer = await send(
    proxy.socketPath,
    `GET http://app.example:${origin.port}/ HTTP/1.1\r\nHost: x\r\nConnection: close, X-Gone, Host\r\nX-Gone: 1\r\nX-Kept: 1\r\nTE: trailers\r\nProxy-Authorization: Basic eA==\r\nProxy-Connection: keep-alive\r\n\r\n`,
  );
  const [head = "", body = ""] = answer.split("\r\n\r\n");
  expect(JSON.parse(body.slice(body.indexOf("["), body.lastIndexOf("]") + 1))).toEqual([
    ...["Host", `app.example:${origin.port}`, "X-Kept", "1", "Connection", "close"],
  ]);
  expect(head).toContain("X-Kept: yes");
  expect(head).not.toMatch(/timeout=99|Proxy-Authenticate/);
});

test("a body is carried with either framing, and requests of one client connection may go to two hosts", async () => {
  await using origin = await serveHttp(async (request, response) => {
    let bytes = 0;
    for await (const chunk of request) bytes += (chunk as Buffer).length;
    response.end(
      `${request.headers.host} ${request.headers["content-length"]} ${request.headers["transfer-encoding"]} ${bytes};`,
    );
  });
  await using proxy = await startEgress({ policy: { ...loopback, domains: ["*.example"], ports: [origin.port] } });
  const client = await connectTo(proxy.socketPath);
  client.write(`POST http://a.example:${origin.port}/ HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello`);
  expect(await readUntil(client, ";")).toContain(`a.example:${origin.port} 5 undefined 5`);
  client.write(
    `GET http://b.example:${origin.port}/ HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n`,
  );
  expect(await readUntil(client, ";")).toContain(`b.example:${origin.port} undefined chunked 3`);
  client.write(`POST http://c.example:${origin.port}/ HTTP/1.1\r\nHost: x\r\n\r\n`);
  expect(await readUntil(client, ";")).toContain(`c.example:${origin.port} 0 undefined 0`);
  client.destroy();
});

test("a refused host gets 403 with one sentence, and is reported", async () => {
  await using proxy = await startEgress({ policy: { domains: ["app.example"] } });
  const answer = await send(proxy.socketPath, get("http://evil.example/"));
  expect(answer).toMatch(/^HTTP\/1.1 403 Forbidden\r\n/);
  expect(answer).toContain('Proxy-Status: slipway; error=http_request_denied; details="not_allowed"');
  expect(answer).toMatch(/\r\n\r\nThe sandbox's network policy does not allow evil.example:80.\n$/);
  const refused = await send(proxy.socketPath, "CONNECT evil.example:443 HTTP/1.1\r\n\r\n");
  expect(refused).toMatch(/^HTTP\/1.1 403 Forbidden\r\n/);
  expect(proxy.refusals).toEqual([
    { host: "evil.example", port: 80, rule: "not_allowed", count: 1 },
    { host: "evil.example", port: 443, rule: "not_allowed", count: 1 },
  ]);
  expect(proxy.lookups).toEqual([]);
  expect(proxy.egress.stats().refused).toBe(2);
});

test("the host's loopback is closed unless its range is in the policy", async () => {
  await using origin = await serveTcp((socket) => socket.end("inside"));
  await using proxy = await startEgress({ policy: { domains: ["app.example"], ports: [origin.port] } });
  for (const host of ["127.0.0.1", "[::ffff:127.0.0.1]", "app.example", "127.1", "2130706433", "0x7f.1"]) {
    expect(await send(proxy.socketPath, `CONNECT ${host}:${origin.port} HTTP/1.1\r\n\r\n`)).toMatch(/^HTTP\/1.1 403 /);
  }
  expect(proxy.refusals.map(({ rule }) => rule)).toEqual([
    ...Array(3).fill("private_address"),
    ...Array(3).fill("malformed"),
  ]);
  proxy.egress.setPolicy(policyOf({ ...loopback, ports: [origin.port] }));
  const tunnel = await openTunnel(proxy.socketPath, `127.0.0.1:${origin.port}`);
  expect(await readAll(tunnel)).toBe("inside");
});

test("an IPv6 literal in brackets is dialled when its range allows it", async () => {
  await using origin = await serveTcp((socket) => socket.end("six"), "::1");
  await using proxy = await startEgress({ policy: { cidrs: ["::1/128"], ports: [origin.port] } });
  expect(await readAll(await openTunnel(proxy.socketPath, `[::1]:${origin.port}`))).toBe("six");
});

test("the address that was checked is the one dialled: one lookup, and a second answer does not matter", async () => {
  await using origin = await serveTcp((socket) => socket.end("checked"));
  const answers = [["127.0.0.1"], ["127.0.0.2"]];
  await using proxy = await startEgress({
    policy: { ...loopback, domains: ["rebind.example"], ports: [origin.port] },
    resolve: async () => answers.shift() ?? [],
  });
  expect(await readAll(await openTunnel(proxy.socketPath, `rebind.example:${origin.port}`))).toBe("checked");
  expect(proxy.lookups).toHaveLength(1);
  await expect(openTunnel(proxy.socketPath, `rebind.example:${origin.port}`)).rejects.toThrow("403");
  expect(proxy.lookups).toHaveLength(2);
});

test("of several addresses one that answers is used, and a forbidden one never", async () => {
  await using origin = await serveTcp((socket) => socket.end("second"));
  await using proxy = await startEgress({
    policy: { cidrs: ["127.0.0.1/32", "::1/128"], domains: ["two.example"], ports: [origin.port] },
    resolve: async () => ["::1", "127.0.0.3", "127.0.0.1"],
  });
  expect(await readAll(await openTunnel(proxy.socketPath, `two.example:${origin.port}`))).toBe("second");
});

test("a redirect is handed to the client, whose next request is checked again", async () => {
  await using origin = await serveHttp((_, response) =>
    response.writeHead(302, { Location: "http://169.254.169.254/" }).end(),
  );
  await using proxy = await startEgress({
    policy: { ...loopback, domains: ["app.example"], ports: [80, origin.port] },
  });
  const answer = await send(proxy.socketPath, get(`http://app.example:${origin.port}/`));
  expect(answer).toContain("Location: http://169.254.169.254/");
  expect(await send(proxy.socketPath, get("http://169.254.169.254/"))).toMatch(/^HTTP\/1.1 403 /);
});

test("a failing lookup and a closed port are told apart", async () => {
  const closed = await serveTcp(() => undefined);
  const { port } = closed;
  await closed[Symbol.asyncDispose]();
  await using proxy = await startEgress({
    policy: { ...loopback, domains: ["gone.example", "none.example"], ports: [port] },
    resolve: async (name) => {
      if (name === "none.example") throw new Error("ENOTFOUND");
      return ["127.0.0.1"];
    },
  });
  expect(await send(proxy.socketPath, `CONNECT none.example:${port} HTTP/1.1\r\n\r\n`)).toMatch(/^HTTP\/1.1 403 /);
  expect(await send(proxy.socketPath, `CONNECT gone.example:${port} HTTP/1.1\r\n\r\n`)).toMatch(/^HTTP\/1.1 502 /);
  expect(proxy.refusals.map(({ rule }) => rule)).toEqual(["unresolved"]);
});

test("a tunnel passes an end of one direction on and keeps the other open", async () => {
  await using origin = await serveTcp((socket) => {
    let bytes = 0;
    socket.on("data", (chunk) => {
      bytes += chunk.length;
    });
    socket.on("end", () => socket.end(`got ${bytes}`));
  });
  await using proxy = await startEgress({ policy: { ...loopback, domains: ["app.example"], ports: [origin.port] } });
  const tunnel = await openTunnel(proxy.socketPath, `app.example:${origin.port}`);
  tunnel.end("x".repeat(100_000));
  expect(await readAll(tunnel)).toBe("got 100000");
});

test("an idle tunnel is cut", async () => {
  await using origin = await serveTcp(() => undefined);
  await using proxy = await startEgress({
    policy: { ...loopback, domains: ["app.example"], ports: [origin.port] },
    limits: { idleMs: 50 },
  });
  const tunnel = await openTunnel(proxy.socketPath, `app.example:${origin.port}`);
  expect(await readAll(tunnel)).toBe("");
  await vi.waitFor(() => expect(proxy.egress.stats()).toMatchObject({ clients: 0, upstream: 0 }));
});

test("200 tunnels work at once, and nothing is left of them", async () => {
  await using origin = await serveTcp((socket) => socket.pipe(socket));
  await using proxy = await startEgress({ policy: { ...loopback, domains: ["app.example"], ports: [origin.port] } });
  const tunnels = await Promise.all(
    Array.from({ length: 200 }, () => openTunnel(proxy.socketPath, `app.example:${origin.port}`)),
  );
  expect(proxy.egress.stats()).toMatchObject({ clients: 200, upstream: 200 });
  const echoes = await Promise.all(
    tunnels.map((tunnel, i) => {
      tunnel.end(`tunnel ${i}`);
      return readAll(tunnel);
    }),
  );
  expect(echoes).toEqual(tunnels.map((_, i) => `tunnel ${i}`));
  for (const tunnel of tunnels) tunnel.destroy();
  await vi.waitFor(() => expect(proxy.egress.stats()).toMatchObject({ clients: 0, upstream: 0 }));
});

test("clients past the limit are dropped, the others go on", async () => {
  await using origin = await serveTcp((socket) => socket.pipe(socket));
  await using proxy = await startEgress({
    policy: { ...loopback, domains: ["app.example"], ports: [origin.port] },
    limits: { connections: 2 },
  });
  const [first] = [await openTunnel(proxy.socketPath, `app.example:${origin.port}`), await connectTo(proxy.socketPath)];
  expect(await readAll(createConnection(proxy.socketPath).on("error", () => undefined))).toBe("");
  expect(proxy.egress.stats().dropped).toBe(1);
  first.write("still here");
  expect(await readUntil(first, "still here")).toBe("still here");
});

test("100 MB pass through without piling up in memory", async () => {
  const size = 100 * 1024 * 1024;
  const block = Buffer.alloc(1024 * 1024, 7);
  await using origin = await serveHttp((_, response) => {
    let left = size;
    const fill = () => {
      while (left > 0) {
        left -= block.length;
        if (!response.write(block)) return void response.once("drain", fill);
      }
      response.end();
    };
    fill();
  });
  await using proxy = await startEgress({ policy: { ...loopback, domains: ["app.example"], ports: [origin.port] } });
  const client = await connectTo(proxy.socketPath);
  client.write(get(`http://app.example:${origin.port}/`));
  await once(client, "readable");
  const before = process.memoryUsage().rss;
  // Not reading holds the origin back: what is in flight stays far below the body's size.
  await vi.waitFor(() => expect([...origin.sockets][0]?.writableNeedDrain).toBe(true));
  expect(process.memoryUsage().rss - before).toBeLessThan(size / 2);
  let bytes = 0;
  client.on("data", (chunk) => {
    bytes += chunk.length;
  });
  await once(client, "end");
  expect(bytes).toBeGreaterThan(size);
});

test("an answer that breaks off is cut, never ended as if whole", async () => {
  await using origin = await serveTcp((socket) => {
    socket.once("data", () =>
      socket.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", () => socket.destroy()),
    );
  });
  await using proxy = await startEgress({ policy: { ...loopback, domains: ["app.example"], ports: [origin.port] } });
  const answer = await send(proxy.socketPath, get(`http://app.example:${origin.port}/`));
  expect(answer).not.toContain("\r\n0\r\n");
});

test("a new policy cuts the tunnels it does not allow and leaves the others", async () => {
  await using origin = await serveTcp((socket) => socket.pipe(socket));
  await using proxy = await startEgress({
    policy: { ...loopback, domains: ["a.example", "b.example"], ports: [origin.port] },
  });
  const [a, b] = await Promise.all(
    ["a", "b"].map((name) => openTunnel(proxy.socketPath, `${name}.example:${origin.port}`)),
  );
  proxy.egress.setPolicy(policyOf({ ...loopback, domains: ["b.example"], ports: [origin.port] }));
  expect(a && (await readAll(a))).toBe("");
  b?.end("on");
  expect(b && (await readAll(b))).toBe("on");
});

test("the socket has its mode, replaces a stale one and is gone after the close", async () => {
  await using first = await startEgress({ socketMode: 0o660 });
  expect((await stat(first.socketPath)).mode & 0o777).toBe(0o660);
  await using second = await startEgress({ socketPath: first.socketPath, socketMode: 0o666 });
  expect((await stat(first.socketPath)).mode & 0o777).toBe(0o666);
  await second.egress.close();
  await expect(stat(first.socketPath)).rejects.toThrow("ENOENT");
});

test("a close cuts what is open", async () => {
  await using origin = await serveTcp((socket) => socket.pipe(socket));
  await using proxy = await startEgress({ policy: { ...loopback, domains: ["app.example"], ports: [origin.port] } });
  const tunnel = await openTunnel(proxy.socketPath, `app.example:${origin.port}`);
  await proxy.egress.close();
  expect(await readAll(tunnel)).toBe("");
});
