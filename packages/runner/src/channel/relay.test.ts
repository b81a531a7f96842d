import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer as createHttpServer } from "node:http";
import { connect, createServer, type Server, type Socket } from "node:net";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { type Relay, startRelay } from "./relay.ts";
import { createTestPlace, type TestPlace } from "./testing/place.ts";

let place: TestPlace;
let relay: Relay;
let upstream: Server;
let accepted: Socket[];
beforeEach(async () => {
  place = createTestPlace();
  accepted = [];
  upstream = createServer({ allowHalfOpen: true }, (socket) => {
    accepted.push(socket);
    socket.on("error", () => {});
  });
  await once(upstream.listen(place.socketPath), "listening");
  relay = await startRelay(place.socketPath);
});
afterEach(async () => {
  await relay.close();
  for (const socket of accepted) socket.destroy();
  upstream.close();
  place[Symbol.dispose]();
});

const dial = (): Socket => {
  const socket = connect({ port: relay.port, host: "127.0.0.1", allowHalfOpen: true });
  socket.on("error", () => {});
  return socket;
};
const acceptOne = async (): Promise<Socket> => {
  await vi.waitFor(() => expect(accepted.length).toBeGreaterThan(0));
  return accepted.shift() as Socket;
};
const readAll = async (socket: Socket): Promise<Buffer> => Buffer.concat(await socket.toArray());

test("bytes go both ways, and each direction ends by itself", async () => {
  const client = dial();
  const up = randomBytes(3_000_000);
  const down = randomBytes(3_000_000);
  client.end(up);
  const server = await acceptOne();
  expect(up.equals(await readAll(server))).toBe(true);
  expect(client.readableEnded).toBe(false);
  server.end(down);
  expect(down.equals(await readAll(client))).toBe(true);
});

test("the request continues after the server has ended its side", async () => {
  const client = dial();
  const server = await acceptOne();
  server.end("early end");
  expect((await readAll(client)).toString()).toBe("early end");
  client.end("still listening?");
  expect((await readAll(server)).toString()).toBe("still listening?");
});

test("a reader that does not read blocks the writer", async () => {
  const client = dial();
  const server = await acceptOne();
  client.pause();
  let taken = 0;
  const chunk = Buffer.alloc(64 * 1024);
  const total = 64 * 1024 * 1024;
  while (taken < total && server.write(chunk)) taken += chunk.length;
  for (;;) {
    const drained = await Promise.race([once(server, "drain").then(() => true), quiet(server)]);
    if (!drained) break;
    while (taken < total && server.write(chunk)) taken += chunk.length;
  }
  expect(taken).toBeLessThan(total / 2);
  server.end();
  expect((await readAll(client)).length).toBeGreaterThanOrEqual(taken);
});

test("while the host is away a connection fails at once", async () => {
  await relay.close();
  upstream.close();
  relay = await startRelay(`${place.socketPath}-none`);
  await expect(fetch(`http://127.0.0.1:${relay.port}/v1/messages`)).rejects.toThrow("fetch failed");
});

test("a connection that breaks on one side breaks on both", async () => {
  const first = dial();
  const server = await acceptOne();
  const ended = once(server.resume(), "end");
  first.resetAndDestroy();
  await ended;
  const second = dial();
  const broken = once(second.resume(), "end");
  (await acceptOne()).destroy();
  await broken;
});

test("a stream that the host's death cuts is an error for an HTTP client, never an end", async () => {
  const path = `${place.socketPath}-http`;
  const http = createHttpServer((_, response) => {
    response.write("data: first\n\n");
  });
  await once(http.listen(path), "listening");
  const through = await startRelay(path);
  const response = await fetch(`http://127.0.0.1:${through.port}/`);
  const reader = response.body?.getReader();
  await reader?.read();
  http.closeAllConnections();
  await expect(reader?.read()).rejects.toThrow("terminated");
  http.close();
  await through.close();
});

test("a closed relay leaves nothing open", async () => {
  const client = dial();
  const server = await acceptOne();
  const ended = Promise.all([once(server.resume(), "end"), once(client.resume(), "end")]);
  await relay.close();
  await ended;
  const refused = connect({ port: relay.port, host: "127.0.0.1" });
  await expect(once(refused, "connect")).rejects.toMatchObject({ code: "ECONNREFUSED" });
});

/** Resolves when nothing has been written for a while: a writer that is held back gives no event. */
function quiet(socket: Socket): Promise<false> {
  return new Promise((resolve) => {
    let written = -1;
    const timer = setInterval(() => {
      if (socket.bytesWritten === written) {
        clearInterval(timer);
        resolve(false);
      }
      written = socket.bytesWritten;
    }, 200);
  });
}
