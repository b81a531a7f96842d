import { createHash } from "node:crypto";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import {
  createServer,
  request as httpRequest,
  type IncomingMessage,
  type RequestListener,
  type Server,
} from "node:http";
import { type AddressInfo, connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Duplex } from "node:stream";
import { runInNewContext } from "node:vm";
import { newId, SlipwayError } from "@slipway/contract";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { type Address, openUsedPorts, type UsedPorts } from "./address.ts";
import { accessCookie, cookieForBrowser } from "./cookies.ts";
import { createPreview, type PreviewOptions } from "./preview.ts";

const sandbox = newId("sbx");

let directory: string;
let usedPorts: UsedPorts;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "slipway-previews-"));
  usedPorts = openUsedPorts(join(directory, "ports"));
});
afterAll(() => rm(directory, { recursive: true, force: true }));

async function serve(onRequest: RequestListener) {
  const server = createServer(onRequest);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const dispose = async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  };
  return { server, port: portOf(server), [Symbol.asyncDispose]: dispose };
}

function portOf(server: Server): number {
  return (server.address() as AddressInfo).port;
}

async function connectTo(port: number): Promise<Duplex> {
  const socket = connect(port, "127.0.0.1");
  await once(socket, "connect").catch(() => {
    throw new SlipwayError("connection_refused", "Nothing listens.");
  });
  return socket;
}

function previews(options: Partial<PreviewOptions> = {}) {
  return createPreview({ usedPorts, connect: (_, port) => connectTo(port), ...options });
}

/** fetch hides Host, Cookie and Set-Cookie; this does not. */
async function ask(
  { hostPort }: Address,
  path: string,
  headers: Record<string, string> = {},
  method = "GET",
  body = "",
) {
  const outgoing = httpRequest({ host: "127.0.0.1", port: hostPort, path, headers, method, agent: false });
  outgoing.end(body);
  const [answer] = (await once(outgoing, "response")) as [IncomingMessage];
  return { status: answer.statusCode, headers: answer.headers, text: (await answer.toArray()).join("") };
}

const browser = { "sec-fetch-mode": "navigate" };

test("the first visit with the token sets a cookie, and the cookie lets in", async () => {
  await using inner = await serve((request, response) => response.end(`page ${request.url}`));
  await using preview = previews();
  const address = await preview.open({ sandbox, port: inner.port });
  expect(address.visitUrl).toBe(`http://127.0.0.1:${address.hostPort}/?slipway_token=${address.token}`);
  const first = await ask(address, `/a?slipway_token=${address.token}&b=1`, browser);
  expect(first).toMatchObject({ status: 303, headers: { location: "/a?b=1" }, text: "" });
  const [cookie = ""] = first.headers["set-cookie"] ?? [];
  expect(cookie).toBe(`${accessCookie(address.token)}=${address.token}; Path=/; HttpOnly; SameSite=Lax`);
  expect(await ask(address, "/a?b=1", { Cookie: cookie.split(";")[0] ?? "" })).toMatchObject({
    status: 200,
    text: "page /a?b=1",
  });
});

test("without a token there is a plain page and no connection into the sandbox", async () => {
  const connecting = vi.fn(connectTo);
  await using preview = previews({ connect: (_, port) => connecting(port) });
  const address = await preview.open({ sandbox, port: 3000 });
  const answer = await ask(address, "/");
  expect(answer).toMatchObject({ status: 401, headers: { "content-security-policy": "default-src 'none'" } });
  expect(answer.text).toContain("needs its access token");
  expect(connecting).not.toHaveBeenCalled();
});

test.each(["//evil.example/", "/\\evil.example/", "///evil.example/"])(
  "the redirect of %s stays here",
  async (path) => {
    await using preview = previews();
    const address = await preview.open({ sandbox, port: 3000 });
    const answer = await ask(address, `${path}?slipway_token=${address.token}`, browser);
    expect(answer.headers.location).toBe("/evil.example/");
  },
);

test("no name but its own leads to a preview, whoever asks", async () => {
  const connecting = vi.fn(connectTo);
  await using preview = previews({ connect: (_, port) => connecting(port) });
  const address = await preview.open({ sandbox, port: 3000 });
  const answer = await ask(address, "/", { Host: "rebound.example", "X-Slipway-Token": address.token });
  expect(answer).toMatchObject({ status: 421, text: expect.stringContaining("answers only at") });
  expect(connecting).not.toHaveBeenCalled();
});

test("the sandbox sees the preview's address, its own cookies, and nothing of any token", async () => {
  await using inner = await serve((request, response) => {
    response.setHeader("Set-Cookie", [`${accessCookie("x")}=stolen`, "session=1; Domain=localhost; HttpOnly", "none"]);
    response.setHeader("Clear-Site-Data", `"cookies"`);
    response.end(JSON.stringify([request.url, ...request.rawHeaders]));
  });
  await using preview = previews();
  const address = await preview.open({ sandbox, port: inner.port });
  const other = await preview.open({ sandbox, port: 3000 });
  const cookieOf = (set: string, { token }: Address) => cookieForBrowser(set, token) ?? "";
  const cookies = [
    ...[`${accessCookie(address.token)}=${address.token}`, "foreign=1", cookieOf("a=1", address), "session=theirs"],
    ...[`${accessCookie(other.token)}=${other.token}`, cookieOf("a=2", other), cookieOf("b=2", address)],
  ];
  const answer = await ask(address, `/x?slipway_token=nonsense&y=1`, {
    "X-Slipway-Token": address.token,
    "X-Forwarded-For": "6.6.6.6",
    Cookie: cookies.join("; "),
    Referer: `${address.visitUrl}&z=1`,
  });
  expect(JSON.parse(answer.text)).toEqual([
    ...["/x?y=1", "Host", `127.0.0.1:${address.hostPort}`, "Cookie", "a=1; b=2"],
    ...["Referer", `${address.url}?z=1`, "Connection", "close"],
  ]);
  expect(answer.headers["set-cookie"]).toEqual([
    cookieOf(`${accessCookie("x")}=stolen`, address),
    cookieOf("session=1; HttpOnly", address),
  ]);
  expect(answer.headers).not.toHaveProperty("clear-site-data");
});

test("scripts of a page have the app's cookies by their own names, and nothing else of the answer is changed", async () => {
  const page = "<!doctype html><html><head lang=en><title>\u00e9</title></head></html>";
  const answers: Record<string, [type: string, body: string, encoding?: string]> = {
    "/page": ["text/html; charset=utf-8", page],
    "/bare": ["text/html", "<p>no head</p>"],
    "/packed": ["text/html", page, "x-own"],
    "/script.js": ["text/javascript", "'<head>'"],
  };
  const encodings: unknown[] = [];
  await using inner = await serve((request, response) => {
    const [type, body, encoding] = answers[request.url ?? ""] ?? ["", ""];
    encodings.push(request.headers["accept-encoding"]);
    if (encoding !== undefined) response.setHeader("Content-Encoding", encoding);
    response.setHeader("Content-Type", type).setHeader("Content-Length", Buffer.byteLength(body)).end(body);
  });
  await using preview = previews();
  const address = await preview.open({ sandbox, port: inner.port });
  const get = (path: string, dest: string) =>
    ask(address, path, { "X-Slipway-Token": address.token, "Accept-Encoding": "gzip", "Sec-Fetch-Dest": dest });
  const [before, script = "", after] = (await get("/page", "document")).text.split(/<script>(.*)<\/script>/s);
  expect(`${before}${after}`).toBe(page);
  expect(before).toMatch(/<head lang=en>$/);
  expect((await get("/page", "empty")).text).toBe(page);
  for (const path of ["/bare", "/packed", "/script.js"]) {
    expect((await get(path, "document")).text).toBe(answers[path]?.[1]);
  }
  expect(encodings).toEqual([undefined, "gzip", undefined, undefined, undefined]);

  const theirs = [`foreign=1`, cookieForBrowser("theme=dark", address.token)];
  class Document {
    readonly currentScript = { remove: () => theirs.push("script removed") };
    get cookie() {
      return theirs.join("; ");
    }
    set cookie(cookie: string) {
      theirs.push(cookie);
    }
  }
  const document = new Document();
  runInNewContext(script, { document, Document });
  expect(document.cookie).toBe("theme=dark");
  document.cookie = " a=1; Path=/";
  expect(theirs.slice(2)).toEqual(["script removed", cookieForBrowser("a=1; Path=/", address.token)]);
});

test("a body goes in, and a redirect of the server to itself comes out with the preview's address", async () => {
  await using inner = await serve(async (request, response) => {
    const body = (await request.toArray()).join("");
    response.writeHead(302, { Location: `http://localhost:${inner.port}/done?${body}` }).end();
  });
  await using preview = previews();
  const address = await preview.open({ sandbox, port: inner.port });
  const answer = await ask(address, "/", { "X-Slipway-Token": address.token, "Content-Length": "5" }, "POST", "hello");
  expect(answer.headers.location).toBe("/done?hello");
});

test("events are passed on one by one as they come", async () => {
  let emit: (text: string) => void = () => undefined;
  await using inner = await serve((_, response) => {
    response.writeHead(200, { "Content-Type": "text/event-stream" });
    response.flushHeaders();
    emit = (text) => response.write(`data: ${text}\n\n`);
  });
  await using preview = previews();
  const address = await preview.open({ sandbox, port: inner.port });
  const response = await fetch(address.url, { headers: { "x-slipway-token": address.token } });
  expect(response.headers.get("content-type")).toBe("text/event-stream");
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  for (const text of ["one", "two", "three"]) {
    emit(text);
    expect((await reader?.read())?.value).toBe(`data: ${text}\n\n`);
  }
  await reader?.cancel();
});

test("502 when nothing listens, 503 when the sandbox is not running, 502 when the server breaks off", async () => {
  const failures = [
    new SlipwayError("connection_refused", "Nothing listens."),
    new SlipwayError("sandbox_not_running", "It sleeps."),
    new Error("unexpected"),
  ];
  await using preview = previews({ connect: () => Promise.reject(failures.shift()) });
  const address = await preview.open({ sandbox, port: 3000 });
  const headers = { "X-Slipway-Token": address.token };
  expect(await ask(address, "/", headers)).toMatchObject({
    status: 502,
    text: expect.stringContaining("Nothing answers"),
  });
  expect(await ask(address, "/", headers)).toMatchObject({ status: 503, text: expect.stringContaining("not running") });
  expect((await ask(address, "/", headers)).status).toBe(502);
  await using inner = await serve((request) => request.socket.destroy());
  await using second = previews();
  const broken = await second.open({ sandbox, port: inner.port });
  expect((await ask(broken, "/", { "X-Slipway-Token": broken.token })).status).toBe(502);
});

/** Echoes one short text frame after another. */
function echoFrames(request: IncomingMessage, socket: Duplex): void {
  const accept = createHash("sha1")
    .update(`${request.headers["sec-websocket-key"]}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`)
    .digest("base64");
  socket.write(
    `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`,
  );
  socket.on("error", () => socket.destroy());
  socket.on("data", (frame: Buffer) => {
    if (((frame[0] ?? 0) & 0x0f) === 8) return void socket.end(Buffer.from([0x88, 0]));
    const mask = frame.subarray(2, 6);
    const text = frame.subarray(6).map((byte, i) => byte ^ (mask[i % 4] ?? 0));
    socket.write(Buffer.concat([Buffer.from([0x81, text.length]), text]));
  });
}

test("a WebSocket works both ways and closes cleanly", async () => {
  await using inner = await serve((_, response) => response.end());
  let seen: IncomingMessage["headers"] = {};
  inner.server.on("upgrade", (request, socket) => {
    seen = request.headers;
    echoFrames(request, socket);
  });
  await using preview = previews();
  const address = await preview.open({ sandbox, port: inner.port });
  const socket = new WebSocket(`ws://127.0.0.1:${address.hostPort}/hmr?slipway_token=${address.token}`);
  await once(socket, "open");
  for (const text of ["reload", "again"]) {
    const message = once(socket, "message");
    socket.send(text);
    expect(((await message) as [MessageEvent])[0].data).toBe(text);
  }
  const closed = once(socket, "close");
  socket.close();
  await closed;
  expect(seen.host).toBe(`127.0.0.1:${address.hostPort}`);
  expect(JSON.stringify(seen)).not.toContain(address.token);
});

test("a WebSocket of another page is refused although the browser sends the cookie", async () => {
  await using inner = await serve((_, response) => response.end());
  const upgrades = vi.fn();
  inner.server.on("upgrade", upgrades);
  await using preview = previews();
  const address = await preview.open({ sandbox, port: inner.port });
  const headers = {
    Connection: "Upgrade",
    Upgrade: "websocket",
    "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
    "Sec-WebSocket-Version": "13",
    Cookie: `${accessCookie(address.token)}=${address.token}`,
    Origin: "http://evil.example",
  };
  expect((await ask(address, "/hmr", headers)).status).toBe(403);
  expect((await ask(address, `/hmr?slipway_token=${address.token}`, headers)).status).toBe(403);
  const { Origin: _, ...own } = headers;
  expect((await ask(address, "/hmr", { ...own, Cookie: "" })).status).toBe(401);
  expect((await ask(address, "/hmr", { ...own, Host: "rebound.example" })).status).toBe(421);
  expect(upgrades).not.toHaveBeenCalled();
});

test("the address stays: while open, and after a restart when the port is still free", async () => {
  await using first = previews();
  const address = await first.open({ sandbox, port: 3000 });
  expect(await first.open({ sandbox, port: 3000 })).toBe(address);
  const other = await first.open({ sandbox, port: 5173 });
  expect(other.hostPort).not.toBe(address.hostPort);
  expect(other.token).not.toBe(address.token);
  await first[Symbol.asyncDispose]();
  await using second = previews();
  const { hostPort, token, visitUrl } = address;
  expect(await second.open({ sandbox, port: 3000, hostPort, token })).toMatchObject({ hostPort, token, visitUrl });
  await using third = previews();
  const moved = await third.open({ sandbox, port: 3000, hostPort, token });
  expect(moved.hostPort).not.toBe(hostPort);
  expect(moved.token).toBe(token);
});

test("a port that a preview has had is no other one's, whatever process gave it, until there are no others", async () => {
  const [one, another] = [openUsedPorts(join(directory, "few")), openUsedPorts(join(directory, "few"))];
  const open = async (ports: UsedPorts, hostPort?: number) => {
    await using preview = previews({ usedPorts: ports });
    return (await preview.open({ sandbox, port: 3000, ...(hostPort !== undefined && { hostPort }) })).hostPort;
  };
  const left = await Promise.all([open(one), open(another)]);
  expect(new Set(left).size).toBe(2);
  // Known to an older process only, which did not note it.
  const kept = await open(one, 9_999);
  expect(await another.claim(kept)).toBe(false);
  for (const port of left) expect(await open({ claim: async (wanted) => wanted === port })).toBe(port);
  await expect(open({ claim: async () => false })).rejects.toMatchObject({ code: "ports_used_up" });
});

test("a released sandbox's addresses are closed, open connections with them, and others stay", async () => {
  await using inner = await serve((_, response) => void response.writeHead(200).write("endless"));
  await using preview = previews();
  const [address, other] = [
    await preview.open({ sandbox, port: inner.port }),
    await preview.open({ sandbox: newId("sbx"), port: 1 }),
  ];
  const response = await fetch(address.url, { headers: { "x-slipway-token": address.token } });
  await preview.release(sandbox);
  await expect(response.text()).rejects.toThrow();
  await expect(fetch(address.url)).rejects.toThrow();
  expect((await ask(other, "/")).status).toBe(401);
});

test("a visitor who leaves takes the connection into the sandbox along", async () => {
  await using inner = await serve((_, response) => void response.writeHead(200).write("endless"));
  await using preview = previews();
  const address = await preview.open({ sandbox, port: inner.port });
  const abort = new AbortController();
  await fetch(address.url, { headers: { "x-slipway-token": address.token }, signal: abort.signal });
  abort.abort();
  const open = () => new Promise<number>((resolve) => inner.server.getConnections((_, count) => resolve(count)));
  await vi.waitFor(async () => expect(await open()).toBe(0));
});
