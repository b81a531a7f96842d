import { randomUUID } from "node:crypto";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { driverOf } from "./agents/index.ts";
import { openChannel } from "./channel/channel.ts";
import { startRelay } from "./channel/relay.ts";
import { createTransport } from "./channel/transport.ts";
import { run } from "./run.ts";
import { type RunnerSettings, readSettings } from "./settings.ts";
import { endOrphans } from "./system/processes.ts";
import { serveMcp } from "./team/mcp.ts";

const [mode, socketPath] = process.argv.slice(2);
if (mode === "mcp" && socketPath !== undefined) {
  await serveMcp(socketPath);
} else {
  await main(readSettings(process.env));
  // A turn that did not end in time may hold sockets open, but the run is over.
  process.exit(0);
}

/** Takes one run to its end, inside a sandbox. */
async function main(settings: RunnerSettings): Promise<void> {
  const { token, socketPath, toolsDirectory, directory, channelDirectory, environment } = settings;
  const cancel = new AbortController();
  process.on("SIGTERM", () => cancel.abort());
  globalThis.AI_SDK_LOG_WARNINGS = false;
  await endOrphans();
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const transport = createTransport({ socketPath, token });
  await using channel = await openChannel({ transport, instance: randomUUID(), directory: channelDirectory });
  const relay = await startRelay(socketPath);
  const surroundings = {
    toolsDirectory,
    homesDirectory: join(directory, "homes"),
    environment: { PATH: "/usr/local/bin:/usr/bin:/bin", ...environment },
  };
  await run({
    channel,
    directory,
    gateway: { baseUrl: `http://127.0.0.1:${relay.port}`, token },
    environment,
    driver: (name) => driverOf(name, surroundings),
    mcpCommand: (socket) => [process.execPath, fileURLToPath(import.meta.url), "mcp", socket],
    signal: cancel.signal,
  });
  await relay.close();
}
