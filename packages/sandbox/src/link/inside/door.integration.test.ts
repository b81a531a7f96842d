import { randomBytes } from "node:crypto";
import { once } from "node:events";
import type { Server, Socket } from "node:net";
import { connect } from "node:net";
import { duplexPair } from "node:stream";
import { hasCode } from "@slipway/contract";
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from "vitest";
import { enter, type LinkRequest, newHolder } from "../handshake.ts";
import { freePort } from "../link-fixture.ts";
import { openDoor } from "./door.ts";

const key = randomBytes(32);
let port: number;
let door: Server;
let entered: LinkRequest[];
beforeEach(async () => {
  port = await freePort();
  entered = [];
  const decide = async ({ role }: LinkRequest) => (role === "channel" ? ("in_use" as const) : ("welcome" as const));
  door = await openDoor({ key, port, decide, welcome: (request, socket) => entered.push(request) && socket.resume() });
});
afterEach(() => void door.close());

function dial(): Socket {
  const socket = connect(port, "127.0.0.1").on("error", () => undefined);
  onTestFinished(() => void socket.destroy());
  return socket;
}
const control = () => ({ role: "control", holder: newHolder() }) as const;
const closed = (socket: Socket) => (socket.closed ? undefined : once(socket.resume(), "close"));

test("who has the key is let in, and knows the other side has it too", async () => {
  const request = control();
  await enter(dial(), key, request);
  await vi.waitFor(() => expect(entered).toEqual([request]));
});

test("who has another key is refused and learns nothing", async () => {
  const socket = dial();
  await expect(enter(socket, randomBytes(32), control())).rejects.toSatisfy((e) => hasCode(e, "provider_unavailable"));
  await closed(socket);
  expect(entered).toEqual([]);
});

test("a channel that is in use is refused by its code, and only to who has the key", async () => {
  const request = { role: "channel", holder: newHolder() } as const;
  await expect(enter(dial(), key, request)).rejects.toSatisfy((error) => hasCode(error, "channel_in_use"));
  await expect(enter(dial(), randomBytes(32), request)).rejects.toSatisfy((e) => hasCode(e, "provider_unavailable"));
  expect(entered).toEqual([]);
});

test("what was said on another connection lets nobody in", async () => {
  const socket = dial();
  const said: Buffer[] = [];
  const write = socket.write.bind(socket);
  socket.write = ((bytes: Buffer) => said.push(bytes) && write(bytes)) as typeof socket.write;
  await enter(socket, key, control());
  const replayed = dial();
  for (const bytes of said) replayed.write(bytes);
  await closed(replayed);
  expect(entered.length).toBe(1);
});

test("nobody is let in by the sandbox's own nonce", async () => {
  const [one, other] = [dial(), dial()];
  const [greeting] = (await once(one, "data")) as [Buffer];
  // The greeting's nonce, as the host's own, and a proof that the sandbox would have to have made for itself.
  other.write(Buffer.concat([Buffer.alloc(17), greeting.subarray(8), greeting.subarray(8)]));
  one.write(Buffer.concat([Buffer.alloc(17), greeting.subarray(8), greeting.subarray(8)]));
  await Promise.all([closed(one), closed(other)]);
  expect(entered).toEqual([]);
});

test("a host is not fooled by who has no key", async () => {
  const [mine, theirs] = duplexPair();
  theirs.write(Buffer.concat([Buffer.from("slipway1"), randomBytes(32)]));
  theirs.once("data", () => theirs.write(Buffer.concat([Buffer.of(0), randomBytes(32)])));
  await expect(enter(mine, key, control())).rejects.toSatisfy((error) => hasCode(error, "provider_unavailable"));
});

test.each([
  ["an HTTP request", "GET / HTTP/1.1\r\nHost: x\r\n\r\n".padEnd(200, "x")],
  ["an HTTP/2 preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".padEnd(200, "\0")],
  ["random bytes", randomBytes(100_000)],
])("%s is refused", async (_, bytes) => {
  const socket = dial();
  socket.write(bytes);
  await closed(socket);
  expect(entered).toEqual([]);
});

test("who ends in the middle, or says nothing for long, is cut", async () => {
  const half = dial();
  half.end(randomBytes(40));
  await closed(half);
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  onTestFinished(() => void vi.useRealTimers());
  const connected = once(door, "connection");
  const slow = dial();
  slow.write("s");
  await connected;
  vi.advanceTimersByTime(10_000);
  await closed(slow);
  expect(entered).toEqual([]);
});

test("many who say nothing keep nobody out, and are bounded", async () => {
  const crowd = Array.from({ length: 400 }, () => dial().resume());
  await vi.waitFor(() => expect(crowd.filter(({ closed }) => closed).length).toBeGreaterThanOrEqual(400 - 256));
  await enter(dial(), key, control());
  await vi.waitFor(() => expect(entered.length).toBe(1));
  expect(crowd.filter(({ closed }) => !closed).length).toBeLessThanOrEqual(256);
});
