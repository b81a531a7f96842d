import { once } from "node:events";
import { createServer, connect as dial, type Socket } from "node:net";
import { SlipwayError } from "@slipway/contract";
import { afterEach, describe, expect, test } from "vitest";
import { type Connect, createHttpClient, type Exchange, type ExchangeLimits, usualExchangeLimits } from "./exchange.ts";

const never = new AbortController().signal;
/** The usual ones, but for more time than a busy machine lets any process wait. */
const patient: ExchangeLimits = { ...usualExchangeLimits, timeMs: 60_000 };
const origin = new URL("http://localhost:5173");
const open: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of open.splice(0)) await close();
});

/** A server that gets each connection's first bytes and does as it likes. */
async function serve(answer: (socket: Socket, request: string) => void): Promise<Connect> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => {}).once("data", (data) => answer(socket, data.toString()));
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as { port: number };
  open.push(async () => {
    for (const socket of sockets) socket.destroy();
    server.close();
    await once(server, "close");
  });
  return async () => dial(port, "127.0.0.1");
}

const reply = (socket: Socket, text: string, status = "200 OK", headers = "") =>
  socket.end(`HTTP/1.1 ${status}\r\ncontent-length: ${Buffer.byteLength(text)}\r\n${headers}\r\n${text}`);

function ask(connect: Connect, exchange: Partial<Exchange> = {}, limits: Partial<ExchangeLimits> = {}) {
  const client = createHttpClient(connect, origin, { ...patient, ...limits });
  return client.exchange(
    { method: "GET", path: "/", body: null, isFinal: (status) => status === 200, ...exchange },
    never,
  );
}

test("an app sees a plain request of its own origin, and its answer is given back", async () => {
  let seen = "";
  const connect = await serve((socket, request) => {
    seen = request;
    reply(socket, "hello");
  });
  expect(await ask(connect, { method: "POST", path: "/a?b=1", body: '{"c":1}' })).toEqual({
    status: 200,
    body: "hello",
  });
  expect(seen).toMatch(/^POST \/a\?b=1 HTTP\/1\.1\r\n/);
  expect(seen).toMatch(/\r\nhost: localhost:5173\r\n/i);
  expect(seen).toMatch(/\r\ncontent-type: application\/json\r\n[\s\S]*\{"c":1\}$/i);
});

describe("an app that misbehaves is told of in words", () => {
  test.each<[string, (socket: Socket) => void, RegExp]>([
    ["never answers", () => {}, /not answer completely within 0\.3 seconds/],
    [
      "hangs in the middle of its answer",
      (socket) => socket.write("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf"),
      /not answer completely within/,
    ],
    [
      "says that it goes on for 10 GB",
      (socket) => {
        socket.write("HTTP/1.1 200 OK\r\ncontent-length: 10000000000\r\n\r\n");
        const chunk = Buffer.alloc(64 * 1024);
        const more = () => {
          while (!socket.destroyed && socket.write(chunk));
        };
        socket.on("drain", more);
        more();
      },
      /more than 1048576 bytes/,
    ],
    [
      "sends endless headers",
      (socket) => socket.write(`HTTP/1.1 200 OK\r\nx: ${"a".repeat(100_000)}\r\n\r\n`),
      /not HTTP/,
    ],
    ["speaks something else", (socket) => socket.end("SSH-2.0-OpenSSH_9.2\r\n"), /not HTTP/],
    ["hangs up", (socket) => socket.destroy(), /closed the connection/],
    [
      "hangs up in the middle of its answer",
      (socket) => socket.write("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf", () => socket.destroy()),
      /closed the connection/,
    ],
    [
      "wants another protocol",
      (socket) => socket.write("HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n"),
      /closed the connection/,
    ],
  ])("it %s", async (_, answer, failure) => {
    const limits = answer.length === 0 || failure.source.includes("within") ? { timeMs: 300 } : {};
    expect(await ask(await serve(answer), {}, limits)).toEqual({ failure: expect.stringMatching(failure) });
  });

  test("it takes no connection", async () => {
    const refused: Connect = async () => {
      throw new SlipwayError("connection_refused", "nobody listens");
    };
    expect(await ask(refused)).toEqual({ failure: "refused the connection" });
  });
});

test("what breaks of ours is no answer of the app", async () => {
  const broken: Connect = async () => {
    throw new SlipwayError("sandbox_ended", "it is gone");
  };
  await expect(ask(broken)).rejects.toMatchObject({ code: "sandbox_ended" });
});

describe("a redirect", () => {
  const redirect = (location: string, status = "302 Found") =>
    serve((socket, request) => {
      if (request.startsWith("GET /there ")) reply(socket, "there");
      else reply(socket, "", status, `location: ${location}\r\n`);
    });

  test.each(["/there", "there", "http://localhost:5173/there"])("to %s is followed", async (location) => {
    const answer = await ask(await redirect(location), { method: "POST", body: "x" });
    expect(answer).toEqual({ status: 200, body: "there" });
  });

  test.each(["http://example.com/there", "//example.com/", "http://localhost:80/there", "file:///etc/passwd"])(
    "to %s is not",
    async (location) => {
      expect(await ask(await redirect(location))).toEqual({
        failure: expect.stringContaining("redirected out of the app"),
      });
    },
  );

  test("without an end is given up", async () => {
    expect(await ask(await redirect("/again"))).toEqual({ failure: "redirected more than 5 times" });
  });

  test("that is what is wanted is the answer", async () => {
    expect(await ask(await redirect("/there"), { isFinal: (status) => status === 302 })).toEqual({
      status: 302,
      body: "",
    });
  });

  test("that keeps the method keeps the body", async () => {
    const seen: string[] = [];
    const connect = await serve((socket, request) => {
      seen.push(request);
      if (seen.length === 1) reply(socket, "", "307 Temporary Redirect", "location: /there\r\n");
      else reply(socket, "done");
    });
    expect(await ask(connect, { method: "PUT", body: "kept" })).toEqual({ status: 200, body: "done" });
    expect(seen[1]).toMatch(/^PUT \/there [\s\S]*kept$/);
  });
});

test("cookies that an app sets come back to it until it ends them", async () => {
  const seen: (string | undefined)[] = [];
  const set = ["set-cookie: a=1; Path=/; HttpOnly\r\nset-cookie: b=2\r\n", "set-cookie: a=; Max-Age=0\r\n", ""];
  const connect = await serve((socket, request) => {
    seen.push(/^cookie: (.*)\r$/im.exec(request)?.[1]);
    reply(socket, "", "200 OK", set[seen.length - 1]);
  });
  const client = createHttpClient(connect, origin, patient);
  const exchange = { method: "GET", path: "/", body: null, isFinal: () => true };
  for (let time = 0; time < 3; time++) await client.exchange(exchange, never);
  expect(seen).toEqual([undefined, "a=1; b=2", "b=2"]);
});

test("an exchange that nobody waits for any more is cut", async () => {
  const controller = new AbortController();
  const connect = await serve(() => controller.abort());
  const client = createHttpClient(connect, origin, patient);
  await expect(
    client.exchange({ method: "GET", path: "/", body: null, isFinal: () => true }, controller.signal),
  ).rejects.toThrow();
});
