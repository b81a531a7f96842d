import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

export interface Redis extends AsyncDisposable {
  readonly url: string;
}

/** A server of its own on a free port. Like ours, it answers once a command is on the disk. */
export async function startRedis(): Promise<Redis> {
  const directory = mkdtempSync(join(tmpdir(), "slipway-bench-redis-"));
  const port = await freePort();
  const settings = ["--bind", "127.0.0.1", "--port", `${port}`, "--dir", directory, "--save", ""];
  const durable = ["--appendonly", "yes", "--appendfsync", "always"];
  const server = spawn("redis-server", [...settings, ...durable], { stdio: ["ignore", "pipe", "inherit"] });
  const redis = {
    url: `redis://127.0.0.1:${port}`,
    async [Symbol.asyncDispose]() {
      const ended = once(server, "exit");
      if (server.exitCode === null && server.kill("SIGKILL")) await ended;
      rmSync(directory, { recursive: true });
    },
  };
  for await (const line of createInterface({ input: server.stdout })) {
    if (!line.includes("Ready to accept connections")) continue;
    server.stdout.resume();
    return redis;
  }
  await redis[Symbol.asyncDispose]();
  throw new Error("redis-server did not start");
}

async function freePort(): Promise<number> {
  const listener = createServer().listen(0, "127.0.0.1");
  await once(listener, "listening");
  const address = listener.address();
  listener.close();
  await once(listener, "close");
  if (address === null || typeof address === "string") throw new Error("there is no free port");
  return address.port;
}
