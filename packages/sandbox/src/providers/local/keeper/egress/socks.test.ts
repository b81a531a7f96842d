import { expect, test } from "vitest";
import { readExactly } from "../../../../agent/ports/read.ts";
import { connectTo, readAll, serveTcp, startEgress, type TestEgress } from "./testing.ts";

const loopback = { cidrs: ["127.0.0.1/32", "::1/128"] };
const greeting = Buffer.from([5, 1, 0]);

function request(command: number, type: number, address: Buffer, port: number): Buffer {
  return Buffer.concat([Buffer.from([5, command, 0, type]), address, Buffer.from([port >> 8, port & 0xff])]);
}

function domain(name: string): Buffer {
  return Buffer.concat([Buffer.from([name.length]), Buffer.from(name, "latin1")]);
}

/** The reply's code, and what comes after it. */
async function ask({ socketPath }: TestEgress, message: Buffer): Promise<{ reply: number | undefined; rest: string }> {
  const socket = await connectTo(socketPath);
  socket.write(Buffer.concat([greeting, message]));
  expect(await readExactly(socket, 2)).toEqual(Buffer.from([5, 0]));
  const reply = await readExactly(socket, 10);
  const rest = await readAll(socket);
  socket.destroy();
  return { reply: reply?.[1], rest };
}

test("CONNECT works by name, by IPv4 and by IPv6 address", async () => {
  await using four = await serveTcp((socket) => socket.end("four"));
  await using six = await serveTcp((socket) => socket.end("six"), "::1");
  await using proxy = await startEgress({
    policy: { ...loopback, domains: ["app.example"], ports: [four.port, six.port] },
  });
  expect(await ask(proxy, request(1, 3, domain("App.Example"), four.port))).toEqual({ reply: 0, rest: "four" });
  expect(await ask(proxy, request(1, 1, Buffer.from([127, 0, 0, 1]), four.port))).toEqual({ reply: 0, rest: "four" });
  expect(await ask(proxy, request(1, 3, domain("127.0.0.1"), four.port))).toEqual({ reply: 0, rest: "four" });
  expect(await ask(proxy, request(1, 4, Buffer.from(`${"00".repeat(15)}01`, "hex"), six.port))).toEqual({
    reply: 0,
    rest: "six",
  });
});

test("a refused target gets reply 2 and is reported", async () => {
  await using proxy = await startEgress({ policy: { domains: ["app.example"] } });
  const mapped = Buffer.from(`${"00".repeat(10)}ffff7f000001`, "hex");
  expect((await ask(proxy, request(1, 3, domain("evil.example"), 443))).reply).toBe(2);
  expect((await ask(proxy, request(1, 1, Buffer.from([127, 0, 0, 1]), 80))).reply).toBe(2);
  expect((await ask(proxy, request(1, 4, mapped, 80))).reply).toBe(2);
  expect((await ask(proxy, request(1, 3, domain("127.1"), 80))).reply).toBe(2);
  expect((await ask(proxy, request(1, 3, domain("a\0.example"), 80))).reply).toBe(2);
  expect((await ask(proxy, request(1, 3, domain("app.example"), 22))).reply).toBe(2);
  expect(proxy.refusals.map(({ rule }) => rule)).toEqual([
    ...["not_allowed", "private_address", "private_address", "malformed", "malformed", "port"],
  ]);
});

test("BIND, UDP ASSOCIATE and unknown address types are refused", async () => {
  await using proxy = await startEgress({ policy: { domains: ["app.example"] } });
  expect((await ask(proxy, request(2, 3, domain("app.example"), 443))).reply).toBe(7);
  expect((await ask(proxy, request(3, 1, Buffer.from([0, 0, 0, 0]), 0))).reply).toBe(7);
  expect((await ask(proxy, request(1, 9, Buffer.alloc(4), 443))).reply).toBe(8);
});

test("a client that insists on authentication, or speaks nonsense, is let go", async () => {
  await using proxy = await startEgress();
  const insisting = await connectTo(proxy.socketPath);
  insisting.write(Buffer.from([5, 1, 2]));
  expect(Buffer.from(await readAll(insisting), "latin1")).toEqual(Buffer.from([5, 0xff]));
  for (const nonsense of [
    [5, 1, 0, 4, 1, 0, 1],
    [5, 1, 0, 5, 1, 7, 1],
  ]) {
    const socket = await connectTo(proxy.socketPath);
    socket.write(Buffer.from(nonsense));
    expect((await readAll(socket)).length).toBe(2);
  }
});

test("a request that comes byte by byte is understood", async () => {
  await using origin = await serveTcp((socket) => socket.end("slow"));
  await using proxy = await startEgress({ policy: { ...loopback, domains: ["app.example"], ports: [origin.port] } });
  const socket = await connectTo(proxy.socketPath);
  for (const byte of Buffer.concat([greeting, request(1, 3, domain("app.example"), origin.port)])) {
    await new Promise<void>((resolve) => socket.write(Buffer.from([byte]), () => resolve()));
    await new Promise(setImmediate);
  }
  expect((await readAll(socket)).endsWith("slow")).toBe(true);
});
