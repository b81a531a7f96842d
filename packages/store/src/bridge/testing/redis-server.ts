import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { freePort } from "../../testing/free-port.ts";

export interface RedisServer extends AsyncDisposable {
  readonly url: string;
  /** With -9, as the machine's kernel would. */
  kill(): Promise<void>;
  /** On the same port, with what it had written, or with nothing. */
  start(data: "kept" | "lost"): Promise<void>;
  /** Stops it from answering, without closing a connection. */
  freeze(): void;
  thaw(): void;
}

/** A real server on a free port of the loopback, which writes every command to its file before it answers. */
export async function startRedisServer(): Promise<RedisServer> {
  const directory = mkdtempSync(join(tmpdir(), "slipway-redis-"));
  const first = await runSomewhere(directory);
  const { port } = first;
  let { server } = first;
  const kill = async () => {
    if (server.exitCode !== null || server.signalCode !== null) return;
    const ended = once(server, "exit");
    server.kill("SIGKILL");
    await ended;
  };
  return {
    url: `redis://127.0.0.1:${port}`,
    kill,
    async start(data) {
      if (data === "lost") rmSync(join(directory, "appendonlydir"), { recursive: true, force: true });
      server = await run(directory, port);
    },
    freeze: () => void server.kill("SIGSTOP"),
    thaw: () => void server.kill("SIGCONT"),
    async [Symbol.asyncDispose]() {
      await kill();
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

/** Another process may take a free port before Redis does. */
async function runSomewhere(directory: string, tries = 3): Promise<{ server: ChildProcess; port: number }> {
  const port = await freePort();
  try {
    return { port, server: await run(directory, port) };
  } catch (error) {
    if (tries === 1) throw error;
    return await runSomewhere(directory, tries - 1);
  }
}

async function run(directory: string, port: number): Promise<ChildProcess> {
  const settings = ["--bind", "127.0.0.1", "--port", `${port}`, "--dir", directory, "--save", ""];
  const durable = ["--appendonly", "yes", "--appendfsync", "no"];
  const server = spawn("redis-server", [...settings, ...durable], { stdio: ["ignore", "pipe", "inherit"] });
  for await (const line of createInterface({ input: server.stdout })) {
    if (line.includes("Ready to accept connections")) {
      server.stdout.resume();
      return server;
    }
  }
  throw new Error(`redis-server did not start on port ${port}`);
}
