import { once } from "node:events";
import { createServer } from "node:http";
import type { Duplex } from "node:stream";
import { describe, expect, test } from "vitest";
import type { HostChannel, Sandbox } from "../provider.ts";
import { type Conformance, drain, eventually, expectCode, runProgram, startReady } from "./context.ts";

export function describeChannel(c: Conformance): void {
  if (!c.capabilities.hostChannel) return;

  describe("the host channel", () => {
    test("takes a connection for each program that dials, with any bytes both ways, and an end is an end", async () => {
      await using sandbox = await c.create();
      await using channel = await sandbox.openChannel();
      const echoing = echo(channel);
      const sent = "any bytes \u0000 ".repeat(50_000);
      expect(await callHost(sandbox, channel, sent)).toMatchObject({ exitCode: 0, stdout: sent });
      const answers = await Promise.all(["1", "2", "3"].map((text) => callHost(sandbox, channel, text)));
      expect(answers.map(({ stdout }) => stdout)).toEqual(["1", "2", "3"]);
      await channel[Symbol.asyncDispose]();
      expect(await echoing).toBe(4);
    });

    test("serves HTTP", async () => {
      await using sandbox = await c.create();
      await using channel = await sandbox.openChannel();
      const server = createServer((call, answer) => answer.end(`path ${call.url}`));
      const serving = forEach(channel, (connection) => server.emit("connection", connection));
      const asked = "GET /events HTTP/1.1\r\nhost: run\r\nconnection: close\r\n\r\n";
      expect((await callHost(sandbox, channel, asked)).stdout).toMatch(/^HTTP\/1.1 200 OK[\s\S]*path \/events/);
      await channel[Symbol.asyncDispose]();
      await serving;
    });

    test("keeps a connection for whoever takes it later", async () => {
      await using sandbox = await c.create();
      await using channel = await sandbox.openChannel();
      const asking = callHost(sandbox, channel, "early");
      void echo(channel);
      expect((await asking).stdout).toBe("early");
    });

    test("is one at a time, and can be opened again after its close", async () => {
      await using sandbox = await c.create();
      const first = await sandbox.openChannel();
      await expectCode((await c.provider.get(sandbox.id)).openChannel(), "channel_in_use");
      await first[Symbol.asyncDispose]();
      await first[Symbol.asyncDispose]();
      expect((await callHost(sandbox, first, "")).exitCode).toBe(1);
      await using second = await sandbox.openChannel();
      void echo(second);
      expect((await callHost(sandbox, second, "again")).stdout).toBe("again");
    });

    test("gives out no more after the caller's signal, and stays open", async () => {
      await using sandbox = await c.create();
      await using channel = await sandbox.openChannel();
      const controller = new AbortController();
      const taking = drain(channel.connections({ signal: controller.signal }));
      controller.abort();
      expect(await taking).toEqual([]);
      void echo(channel);
      expect((await callHost(sandbox, channel, "more")).stdout).toBe("more");
    });

    if (c.capabilities.sleep && c.capabilities.sleepKeepsProcesses) {
      test("and its connections go on over a sleep", async () => {
        await using sandbox = await c.create();
        await using channel = await sandbox.openChannel();
        void echo(channel);
        const { exec, output } = await startReady(sandbox, "callHost", [channel.inside, "ready"], { stdin: "open" });
        await sandbox.sleep();
        await sandbox.wake();
        await exec.write("woken");
        await exec.end();
        const { value } = await output.next();
        expect(Buffer.from(value.data).toString()).toBe("woken");
        expect(await exec.wait()).toMatchObject({ exitCode: 0 });
      });
    }

    if (c.capabilities.stopStart) {
      test("goes on over a stop and a start, and may be opened in between", async () => {
        await using sandbox = await c.create();
        const before = await sandbox.openChannel();
        void echo(before);
        await sandbox.stop();
        await sandbox.start();
        await expectEcho(sandbox, before, "started");
        await before[Symbol.asyncDispose]();
        await sandbox.stop();
        await using between = await sandbox.openChannel();
        void echo(between);
        await sandbox.start();
        await expectEcho(sandbox, between, "again");
      });
    }

    test("of a killed coordinator is another's to open", async () => {
      const other = await c.target.otherCoordinator();
      await using sandbox = await c.create();
      await other.send({ type: "openChannel", sandbox: sandbox.id });
      await expectCode(sandbox.openChannel(), "channel_in_use");
      await other.kill();
      await using channel = await sandbox.openChannel();
      void echo(channel);
      expect((await callHost(sandbox, channel, "mine")).stdout).toBe("mine");
    });

    test("ends with its sandbox, by whomever that is destroyed", async () => {
      const sandbox = await c.create();
      await using channel = await sandbox.openChannel();
      const connections = channel.connections()[Symbol.asyncIterator]();
      await startReady(sandbox, "callHost", [channel.inside, "ready"], { stdin: "open", background: true });
      const { value: connection } = await connections.next();
      // A cut may be told as an error, too.
      const closed = once(connection.resume(), "close").catch(() => undefined);
      const more = connections.next();
      await (await c.provider.get(sandbox.id)).destroy();
      await closed;
      expect(await more).toMatchObject({ done: true });
      await expectCode(sandbox.openChannel(), "sandbox_not_found");
    });

    test("is nothing that was open before it was asked for", async () => {
      await using sandbox = await c.create();
      expect((await runProgram(sandbox, "callHost", ["/run/slipway/run.sock"], { input: "" })).exitCode).toBe(1);
    });
  });
}

/** A program that dials before the channel is there again has to dial again. */
async function expectEcho(sandbox: Sandbox, channel: HostChannel, text: string): Promise<void> {
  await eventually(async () => expect((await callHost(sandbox, channel, text)).stdout).toBe(text));
}

async function callHost(sandbox: Sandbox, { inside }: HostChannel, input: string) {
  return await runProgram(sandbox, "callHost", [inside], { input });
}

/** Answers how many connections it has served when the channel has ended. */
async function echo(channel: HostChannel): Promise<number> {
  let count = 0;
  await forEach(channel, (connection) => {
    count++;
    connection.pipe(connection);
  });
  return count;
}

async function forEach(channel: HostChannel, serve: (connection: Duplex) => void): Promise<void> {
  for await (const connection of channel.connections()) serve(connection);
}
