import { once } from "node:events";
import { connect } from "node:net";
import { PassThrough } from "node:stream";
import { text } from "node:stream/consumers";
import { expect, test } from "vitest";
import { runCli, startCli } from "../../../testing/run-cli.ts";
import { addSandbox, createStubProvider } from "../../../testing/stub-provider.ts";

function echoing() {
  const ports: number[] = [];
  const provider = createStubProvider(
    {},
    {
      async connect(port) {
        ports.push(port);
        return new PassThrough();
      },
    },
  );
  addSandbox(provider, { labels: { name: "box" } });
  return { provider, ports };
}

test("bytes go to the port inside and back, until an interrupt ends it well", async () => {
  const { provider, ports } = echoing();
  const started = Promise.withResolvers<number>();
  const onStdout = (data: Buffer) => started.resolve(JSON.parse(data.toString()).listen.port);
  const cli = startCli(["sandbox", "forward", "box", "3000", "--listen", "0", "--json"], { provider, onStdout });
  const socket = connect(await started.promise, "127.0.0.1");
  socket.end("hello");
  expect(await text(socket)).toBe("hello");
  expect(ports).toEqual([3000]);
  const open = connect(await started.promise, "127.0.0.1");
  await once(open, "connect");
  cli.signal("SIGINT");
  expect((await cli.ended).code).toBe(0);
});

test("a port in use is told with another to choose", async () => {
  const { provider } = echoing();
  const started = Promise.withResolvers<number>();
  const onStdout = (data: Buffer) => started.resolve(JSON.parse(data.toString()).listen.port);
  const first = startCli(["sandbox", "forward", "box", "3000", "-l", "0", "--json"], { provider, onStdout });
  const port = String(await started.promise);
  const { code, stderr } = await runCli(["sandbox", "forward", "box", "3000", "--listen", port], { provider });
  expect(code).toBe(125);
  expect(stderr).toContain("--listen 0");
  first.signal("SIGINT");
  await first.ended;
});
