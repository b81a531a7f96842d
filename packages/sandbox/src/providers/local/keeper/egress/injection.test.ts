import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import { connect as connectTls, type TLSSocket } from "node:tls";
import type { NetworkPolicyInput } from "@slipway/contract";
import { describe, expect, test, vi } from "vitest";
import { type DialAddresses, dial } from "./dial.ts";
import {
  connectTo,
  openTunnel,
  policyOf,
  readAll,
  readUntil,
  send,
  serveHttp,
  serveHttps,
  serveTcp,
  startEgress,
} from "./testing.ts";

const secretValue = "Bearer top-secret-7c1f";
const host = "api.example.com";
const secret = { host, header: "Authorization", value: secretValue };
const policy = { cidrs: ["127.0.0.1/32"], secrets: [secret] };

/** Ports 443 and 80 may be taken on the machine, so they stand for a test server's. */
function dialPort(port: number): DialAddresses {
  return (addresses, _port, timeoutMs, signal) => dial(addresses, port, timeoutMs, signal);
}

async function secured(socket: Duplex, ca: string, servername = host): Promise<TLSSocket> {
  const tls = connectTls({ socket, ca, servername, ALPNProtocols: ["h2", "http/1.1"] });
  await once(tls, "secureConnect");
  return tls;
}

async function connectSecured(socketPath: string, ca: string): Promise<TLSSocket> {
  return secured(await openTunnel(socketPath, `${host}:443`), ca);
}

/** Resolves when the egress has connected. */
async function openSocks(socketPath: string, port: number): Promise<Duplex> {
  const socket = await connectTo(socketPath);
  socket.write(Buffer.from([5, 1, 0, 5, 1, 0, 3, host.length, ...Buffer.from(host), port >> 8, port & 0xff]));
  await readUntil(socket, "\x05\0\0\x01\0\0\0\0\0\0");
  return socket;
}

const get = `GET /v1?q=1 HTTP/1.1\r\nHost: ${host}\r\nConnection: close, authorization\r\nauthorization: forged\r\nAUTHORIZATION: again\r\n\r\n`;

function credentials({ headers, rawHeaders }: IncomingMessage): string {
  return `${headers.host} ${rawHeaders.filter((name) => name.toLowerCase() === "authorization").length} ${headers.authorization === secretValue}`;
}

test("the secret is added to requests of its host over verified TLS, and no byte the client sees holds it", async () => {
  await using origin = await serveHttps(host, (request, response) =>
    response.end(`${request.url} ${credentials(request)}`),
  );
  await using proxy = await startEgress({ policy, upstreamCa: origin.ca, dial: dialPort(origin.port) });
  const tls = await connectSecured(proxy.socketPath, proxy.authority.caCertificatePem);
  expect(tls.alpnProtocol).toBe("http/1.1");
  tls.write(get);
  const answer = await readAll(tls);
  expect(answer).toContain(`/v1?q=1 ${host} 1 true`);
  expect(answer).not.toContain("top-secret");
  expect(proxy.lookups).toEqual([host]);
});

test("several requests on one connection each get the secret", async () => {
  await using origin = await serveHttps(host, (request, response) => response.end(`${credentials(request)};`));
  await using proxy = await startEgress({ policy, upstreamCa: origin.ca, dial: dialPort(origin.port) });
  const tls = await connectSecured(proxy.socketPath, proxy.authority.caCertificatePem);
  for (let i = 0; i < 3; i++) {
    tls.write(`GET / HTTP/1.1\r\nHost: other.example\r\n\r\n`);
    expect(await readUntil(tls, ";")).toContain(`${host} 1 true`);
  }
  tls.destroy();
  await vi.waitFor(() => expect(proxy.egress.stats()).toMatchObject({ clients: 0, upstream: 0 }));
});

test("the secret is added over SOCKS as well", async () => {
  await using origin = await serveHttps(host, (request, response) => response.end(credentials(request)));
  await using proxy = await startEgress({ policy, upstreamCa: origin.ca, dial: dialPort(origin.port) });
  const tls = await secured(await openSocks(proxy.socketPath, 443), proxy.authority.caCertificatePem);
  tls.write(get);
  expect(await readAll(tls)).toContain(`${host} 1 true`);
});

describe("in clear text", () => {
  /** An origin without TLS that every port leads to, and what it was sent. */
  async function plainOrigin(changes: NetworkPolicyInput) {
    const seen: string[] = [];
    const origin = await serveHttp((request, response) => {
      seen.push(JSON.stringify(request.rawHeaders));
      response.end(`${request.url} ${credentials(request)}`);
    });
    const proxy = await startEgress({ policy: { ...policy, ...changes }, dial: dialPort(origin.port) });
    const dispose = async () => {
      await proxy[Symbol.asyncDispose]();
      await origin[Symbol.asyncDispose]();
    };
    return { ...proxy, seen, [Symbol.asyncDispose]: dispose };
  }
  const to = (address: string, request = get) => request.replace("GET /v1", `GET ${address}/v1`);
  const upgrade = get.replace("close", "Upgrade").replace("\r\n\r\n", "\r\nUpgrade: websocket\r\n\r\n");

  test("no request gets the secret, whichever port and way it takes, and port 80 is not opened for it", async () => {
    await using proxy = await plainOrigin({});
    for (const address of [`http://${host}`, `http://${host.toUpperCase()}.`, `http://${host}:80`])
      expect(await send(proxy.socketPath, to(address))).toMatch(/^HTTP\/1.1 403 /);
    await expect(openTunnel(proxy.socketPath, `${host}:80`)).rejects.toThrow(/^HTTP\/1.1 403 /);
    await expect(openSocks(proxy.socketPath, 80)).rejects.toThrow("ended before");
    expect(proxy.refusals.filter(({ port, rule }) => port !== 80 || rule !== "not_allowed")).toEqual([]);
    for (const request of [get, upgrade]) await send(proxy.socketPath, to(`http://${host}:443`, request));
    expect(proxy.seen.join()).not.toContain("top-secret");
  });

  test("a host that the policy names as a domain, too, is reached without the secret", async () => {
    await using proxy = await plainOrigin({ domains: [host], ports: [80, 443, 8443] });
    for (const port of [80, 443, 8443])
      expect(await send(proxy.socketPath, to(`http://${host}:${port}`))).toContain(" 0 false");
    for (const port of [80, 8443]) {
      for (const tunnel of [
        await openTunnel(proxy.socketPath, `${host}:${port}`),
        await openSocks(proxy.socketPath, port),
      ]) {
        tunnel.write(get);
        expect(await readAll(tunnel)).toContain(" 2 false");
      }
    }
    expect(proxy.seen.join()).not.toContain("top-secret");
  });

  test("a redirect from TLS to plain http leads to no secret", async () => {
    await using origin = await serveHttps(host, (_, response) =>
      response.writeHead(307, { Location: `http://${host}/v1` }).end(),
    );
    await using proxy = await startEgress({ policy, upstreamCa: origin.ca, dial: dialPort(origin.port) });
    const tls = await connectSecured(proxy.socketPath, proxy.authority.caCertificatePem);
    tls.write(get);
    const location = /^Location: (.*)\/v1\r$/im.exec(await readAll(tls))?.[1] ?? "";
    expect(await send(proxy.socketPath, to(location))).toMatch(/^HTTP\/1.1 403 /);
  });

  test("a rule that names http adds its secret to plain requests to port 80, and to nothing else", async () => {
    await using proxy = await plainOrigin({ secrets: [{ ...secret, scheme: "http" }], ports: [8080] });
    expect(await send(proxy.socketPath, to(`http://${host.toUpperCase()}.`))).toContain(`/v1?q=1 ${host} 1 true`);
    for (const tunnel of [await openTunnel(proxy.socketPath, `${host}:80`), await openSocks(proxy.socketPath, 80)]) {
      tunnel.write(get);
      expect(await readAll(tunnel)).toContain(`/v1?q=1 ${host} 1 true`);
    }
    for (const port of [443, 8080])
      expect(await send(proxy.socketPath, to(`http://${host}:${port}`))).toMatch(/^HTTP\/1.1 403 /);
    await expect(openTunnel(proxy.socketPath, `${host}:443`)).rejects.toThrow(/^HTTP\/1.1 403 /);
  });
});

test("the name in the handshake changes neither where the secret goes nor whether", async () => {
  await using origin = await serveHttps(host, (request, response) => response.end(credentials(request)));
  await using proxy = await startEgress({ policy, upstreamCa: origin.ca, dial: dialPort(origin.port) });
  const tunnel = await openTunnel(proxy.socketPath, `${host}:443`);
  const tls = connectTls({ socket: tunnel, servername: "other.example.com", rejectUnauthorized: false });
  await once(tls, "secureConnect");
  tls.write(get.replace(`Host: ${host}`, "Host: other.example.com"));
  expect(await readAll(tls)).toContain(`${host} 1 true`);
  expect(proxy.lookups).toEqual([host]);
});

test("other hosts get a blind tunnel with their own certificate, and no secret", async () => {
  await using origin = await serveHttps("other.example.com", (request, response) =>
    response.end(`${request.headers.authorization}`),
  );
  await using proxy = await startEgress({
    policy: { ...policy, domains: ["other.example.com"] },
    dial: dialPort(origin.port),
  });
  const tls = await secured(
    await openTunnel(proxy.socketPath, "other.example.com:443"),
    origin.ca,
    "other.example.com",
  );
  tls.write("GET / HTTP/1.1\r\nHost: api.example.com\r\nConnection: close\r\n\r\n");
  expect(await readAll(tls)).toContain("undefined");
});

test("the secret is not sent to a server that cannot prove its name", async () => {
  const received: string[] = [];
  await using impostor = await serveHttps("impostor.example", (request, response) => {
    received.push(JSON.stringify(request.headers));
    response.end();
  });
  await using proxy = await startEgress({ policy, upstreamCa: impostor.ca, dial: dialPort(impostor.port) });
  const tls = await connectSecured(proxy.socketPath, proxy.authority.caCertificatePem);
  tls.write(get);
  expect(await readAll(tls)).toMatch(/^HTTP\/1.1 502 .*certificate/s);
  await using untrusted = await startEgress({ policy, dial: dialPort(impostor.port) });
  const second = await connectSecured(untrusted.socketPath, untrusted.authority.caCertificatePem);
  second.write(get);
  expect(await readAll(second)).toMatch(/^HTTP\/1.1 502 /);
  expect(received).toEqual([]);
});

test("the host of a secret may not resolve to a private address", async () => {
  await using proxy = await startEgress({ policy: { secrets: policy.secrets } });
  const tls = await connectSecured(proxy.socketPath, proxy.authority.caCertificatePem);
  tls.write(get);
  expect(await readAll(tls)).toMatch(/^HTTP\/1.1 403 /);
  expect(proxy.refusals).toEqual([{ host, port: 443, rule: "private_address", count: 1 }]);
});

test("TRACE, which would mirror the secret, is not carried", async () => {
  await using proxy = await startEgress({ policy });
  const tls = await connectSecured(proxy.socketPath, proxy.authority.caCertificatePem);
  tls.write("TRACE / HTTP/1.1\r\nHost: x\r\n\r\n");
  expect(await readAll(tls)).toMatch(/^HTTP\/1.1 405 /);
  expect(proxy.lookups).toEqual([]);
});

test("a secret that is taken away is no longer added, also on a connection that is open", async () => {
  await using origin = await serveHttps(host, (request, response) => response.end(`${credentials(request)};`));
  await using proxy = await startEgress({ policy, upstreamCa: origin.ca, dial: dialPort(origin.port) });
  const tls = await connectSecured(proxy.socketPath, proxy.authority.caCertificatePem);
  tls.write(`GET / HTTP/1.1\r\nHost: ${host}\r\n\r\n`);
  expect(await readUntil(tls, ";")).toContain("true");
  proxy.egress.setPolicy(policyOf({ cidrs: policy.cidrs, domains: [host] }));
  tls.write(`GET / HTTP/1.1\r\nHost: ${host}\r\n\r\n`);
  expect(await readAll(tls)).toMatch(/HTTP\/1.1 403 /);
});

test("a WebSocket through an injected host is upgraded with the secret and carries bytes both ways", async () => {
  await using origin = await serveHttps(host, (_, response) => response.writeHead(426).end());
  let upgraded = "";
  origin.server.on("upgrade", (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    upgraded = `${request.headers.upgrade} ${credentials(request)}`;
    socket.write(
      "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nX-Kept: 1\r\n\r\nhi ",
    );
    if (head.length > 0) socket.unshift(head);
    socket.pipe(socket);
  });
  await using proxy = await startEgress({ policy, upstreamCa: origin.ca, dial: dialPort(origin.port) });
  const tls = await connectSecured(proxy.socketPath, proxy.authority.caCertificatePem);
  tls.write(`GET /ws HTTP/1.1\r\nHost: ${host}\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n\r\nearly `);
  tls.write("late");
  const answer = await readUntil(tls, "late");
  expect(answer).toMatch(
    /^HTTP\/1.1 101 .*X-Kept: 1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nhi early late$/s,
  );
  expect(upgraded).toBe(`websocket ${host} 1 true`);
  tls.destroy();
  await vi.waitFor(() => expect(proxy.egress.stats()).toMatchObject({ clients: 0, upstream: 0 }));
});

test.each([
  ["speaks no TLS", (socket: Duplex) => socket.end("SSH-2.0-x\r\n")],
  ["goes silent", () => undefined],
])("a client that %s towards an injected host is cut", async (_, act) => {
  // In which the tunnel is to be asked for and opened, too.
  await using proxy = await startEgress({ policy, limits: { headersMs: 5000 } });
  const tunnel = await openTunnel(proxy.socketPath, `${host}:443`);
  act(tunnel);
  await readAll(tunnel);
  tunnel.destroy();
  await vi.waitFor(() => expect(proxy.egress.stats().clients).toBe(0));
});

test("an upstream that ends in the middle of TLS gives 502", async () => {
  await using origin = await serveTcp((socket) => socket.once("data", () => socket.destroy()));
  await using proxy = await startEgress({ policy, dial: dialPort(origin.port) });
  const tls = await connectSecured(proxy.socketPath, proxy.authority.caCertificatePem);
  tls.write(get);
  expect(await readAll(tls)).toMatch(/^HTTP\/1.1 502 /);
});
