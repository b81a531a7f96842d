import { once } from "node:events";
import { duplexPair } from "node:stream";
import { expect, onTestFinished, test, vi } from "vitest";
import { asSocket, clientSession, serverSession } from "./session.ts";

/** Two ends of a connection that can go silent. */
function connected() {
  const [near, mine] = duplexPair();
  const [far, theirs] = duplexPair();
  let isSilent = false;
  mine.on("data", (chunk) => isSilent || theirs.write(chunk));
  theirs.on("data", (chunk) => isSilent || mine.write(chunk));
  const client = clientSession(near, "control");
  const server = serverSession(far, "control");
  onTestFinished(() => {
    client.destroy();
    server.destroy();
  });
  const silence = () => {
    isSilent = true;
  };
  return { client, server, silence };
}

test("a heartbeat finds an end that is gone without a word, and leaves one that answers", async () => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval", "setTimeout", "clearTimeout"] });
  onTestFinished(() => void vi.useRealTimers());
  const { client, server, silence } = connected();
  const pinged = once(server, "ping");
  vi.advanceTimersByTime(30_000);
  await pinged;
  // Its answer comes after that of the heartbeat.
  await new Promise((resolve) => client.ping(resolve));
  vi.advanceTimersByTime(20_000);
  expect(client.destroyed).toBe(false);
  silence();
  vi.advanceTimersByTime(10_000);
  expect(client.destroyed).toBe(false);
  vi.advanceTimersByTime(20_000);
  await vi.waitFor(() => expect(client.destroyed).toBe(true));
});

test("a stream that is destroyed is cut for the other end, not ended", async () => {
  const { client, server } = connected();
  const incoming = once(server, "stream");
  const stream = asSocket(client.request({ ":method": "POST" }, { endStream: false }));
  stream.write("some");
  const [taken] = await incoming;
  const other = asSocket(taken);
  expect(String((await once(other, "data"))[0])).toBe("some");
  const ended = vi.fn();
  other.on("end", ended);
  const closed = new Promise((resolve) => other.on("close", resolve));
  stream.destroy();
  await closed;
  expect(ended).not.toHaveBeenCalled();
});

test("an end is an end: the other direction goes on", async () => {
  const { client, server } = connected();
  server.on("stream", (stream) =>
    asSocket(stream)
      .on("end", () => stream.end("after the end"))
      .resume(),
  );
  const stream = asSocket(client.request({ ":method": "POST" }, { endStream: false }));
  const closed = once(stream, "close");
  stream.end("all");
  expect(String((await once(stream, "data"))[0])).toBe("after the end");
  await closed;
  expect(stream.readableEnded).toBe(true);
});

test("a stream of a connection that is lost is cut at both ends, not ended", async () => {
  const { client, server } = connected();
  const incoming = once(server, "stream");
  const stream = asSocket(client.request({ ":method": "POST" }, { endStream: false }));
  stream.write("some");
  const [other] = await incoming;
  const ended = vi.fn();
  const closed = [stream, asSocket(other)].map((end) => {
    end.on("end", ended).resume();
    return new Promise((resolve) => end.on("close", resolve));
  });
  client.destroy();
  server.destroy();
  await Promise.all(closed);
  expect(ended).not.toHaveBeenCalled();
});
