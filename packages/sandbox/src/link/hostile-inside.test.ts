import { randomBytes } from "node:crypto";
import { once } from "node:events";
import type { ServerHttp2Stream } from "node:http2";
import { connect, createServer } from "node:net";
import { type ExecId, hasCode, newId } from "@slipway/contract";
import { expect, onTestFinished, test, vi } from "vitest";
import { admit } from "./handshake.ts";
import { openLink } from "./link.ts";
import { serverSession } from "./session.ts";

/** A link to a program inside that has the key, and answers as it likes. */
async function linkTo(answer: (stream: ServerHttp2Stream, path: string) => void) {
  const key = randomBytes(32);
  const server = createServer(async (socket) => {
    socket.on("error", () => socket.destroy());
    if ((await admit(socket, key, async () => "welcome")) === undefined) return;
    const session = serverSession(socket, "control");
    session.on("stream", (stream, headers) =>
      answer(
        stream.on("error", () => {}),
        String(headers[":path"]),
      ),
    );
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as { port: number };
  const open = async () => {
    const socket = connect(port, "127.0.0.1");
    await once(socket, "connect");
    return socket;
  };
  const link = openLink({ open, key });
  onTestFinished(async () => {
    await link[Symbol.asyncDispose]();
    server.close();
  });
  return link;
}

function saying(body: string) {
  return (stream: ServerHttp2Stream) => {
    stream.respond({ ":status": 200 });
    stream.end(body);
  };
}

const isUnavailable = (error: unknown) => hasCode(error, "provider_unavailable");

test.each(["{}", "null", "[null]", '[{"id":"exc_x"}]', "not JSON", '{"channel":7}'])(
  "a program inside that answers %s has said nothing",
  async (body) => {
    const link = await linkTo(saying(body));
    await expect(link.logs.list(async () => true)).rejects.toSatisfy(isUnavailable);
    if (body !== "null") await expect(link.logs.find(newId("exc"), true)).rejects.toSatisfy(isUnavailable);
    await expect(link.openChannel()).rejects.toSatisfy(isUnavailable);
  },
);

test("an exec of another name is no answer", async () => {
  const [asked, other]: ExecId[] = [newId("exc"), newId("exc")];
  const told = { id: other, argv: ["true"], startedAt: 1, background: false, exit: null };
  const link = await linkTo(saying(JSON.stringify(told)));
  expect(await link.logs.find(other as ExecId, true)).toEqual(told);
  await expect(link.logs.find(asked as ExecId, true)).rejects.toSatisfy(isUnavailable);
});

test("an answer without an end is cut before it fills the host's memory", async () => {
  let sent = 0;
  const link = await linkTo((stream) => {
    stream.respond({ ":status": 200 });
    const block = Buffer.alloc(256 * 1024, " ");
    const more = () => {
      while (!stream.destroyed) {
        sent += block.length;
        if (!stream.write(block)) return void stream.once("drain", more);
      }
    };
    more();
  });
  await expect(link.logs.list(async () => true)).rejects.toSatisfy(isUnavailable);
  expect(sent).toBeLessThan(128 * 1024 * 1024);
});

test.each([
  ["answers nothing", () => {}],
  ["begins an answer and goes silent", (stream: ServerHttp2Stream) => stream.respond({ ":status": 200 })],
])("a program inside that %s is not waited for for ever", async (_, answer) => {
  const asked = Promise.withResolvers<void>();
  const link = await linkTo((stream) => {
    answer(stream);
    asked.resolve();
  });
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  onTestFinished(() => void vi.useRealTimers());
  const listing = link.logs.list(async () => true);
  const outcome = expect(listing).rejects.toSatisfy(isUnavailable);
  await asked.promise;
  vi.advanceTimersByTime(60_000);
  await outcome;
});
