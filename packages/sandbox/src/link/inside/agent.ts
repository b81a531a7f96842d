import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, constants, openSync, renameSync } from "node:fs";
import { createServer } from "node:net";
import type { Readable } from "node:stream";
import { listenAt } from "../../unix-socket.ts";
import type { Settings } from "./settings.ts";

export interface Agent {
  readonly socketPath: string;
  readonly process: ChildProcess;
}

/** Starts the agent and waits until it answers. It dies with this process, and ends what it runs. */
export async function startAgent(settings: Settings, logs: string): Promise<Agent> {
  const socketPath = `${settings.state}/agent.sock`;
  // The agent gets the listener. Closing it here removes the name that it was bound to.
  const listener = createServer();
  await listenAt(listener, `${socketPath}.new`, 0o600);
  renameSync(`${socketPath}.new`, socketPath);
  const directory = openSync(logs, constants.O_RDONLY | constants.O_DIRECTORY);
  const { user, processes } = settings;
  const child = spawn(settings.agent, ["--user", user, "--processes", String(processes)], {
    stdio: ["ignore", "inherit", "inherit", handleOf(listener), directory, "pipe"],
    // Nothing of this program's environment, least of all the key.
    env: {},
    cwd: "/",
  });
  try {
    const ready = (child.stdio as readonly unknown[])[5] as Readable;
    const failed = new Promise<never>((_, reject) => {
      child.once("error", reject);
      child.once("exit", (code, signal) => reject(new Error(`The agent ended at once: ${signal ?? code}.`)));
    });
    await Promise.race([once(ready, "data"), failed]);
    ready.destroy();
  } finally {
    closeSync(directory);
    listener.close();
  }
  return { socketPath, process: child };
}

/** What a child can inherit of a server: its descriptor. */
function handleOf(server: object): never {
  return (server as { _handle: never })._handle;
}
