import { randomBytes, randomInt } from "node:crypto";
import type { Server } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { SlipwayError } from "@slipway/contract";
import { tokenParameter } from "./access.ts";
import { createEntrance, type EntranceOptions } from "./entrance.ts";
import type { UsedPorts } from "./ports.ts";

export type { Page } from "./pages.ts";
export { openUsedPorts, type UsedPorts } from "./ports.ts";

export interface AddressOptions extends Pick<EntranceOptions, "port" | "connect" | "pageOnFailure"> {
  /** Its earlier port on this machine, to reuse when free. */
  readonly hostPort?: number | undefined;
  /** Grants access; by default a new one. */
  readonly token?: string | undefined;
  readonly usedPorts: UsedPorts;
}

/** A loopback address that leads to a port of a sandbox, for holders of its token. */
export interface Address extends AsyncDisposable {
  readonly hostPort: number;
  readonly token: string;
  /** Without the token. */
  readonly url: string;
  /** With the token, for the first visit. */
  readonly visitUrl: string;
}

const loopback = "127.0.0.1";
/** Below the ephemeral ports, so that a port is free again after a restart. */
const range = { first: 10_000, last: 32_767 };

/** Fails with `ports_used_up`. */
export async function openAddress(options: AddressOptions): Promise<Address> {
  const { hostPort, token = newToken(), usedPorts, ...entrance } = options;
  const sockets = new Set<Socket>();
  const server: Server = createEntrance({ ...entrance, token, seenAt: () => portOf(server) });
  server.on("connection", (socket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
  });
  if (hostPort !== undefined) await usedPorts.claim(hostPort);
  if (hostPort === undefined || !(await listens(server, hostPort))) await listenAnew(server, usedPorts);
  const url = `http://${loopback}:${portOf(server)}/`;
  return {
    hostPort: portOf(server),
    token,
    url,
    visitUrl: `${url}?${tokenParameter}=${token}`,
    async [Symbol.asyncDispose]() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}

/** Safe in an address and in a cookie. */
function newToken(): string {
  return randomBytes(24).toString("base64url");
}

function portOf(server: Server): number {
  return (server.address() as AddressInfo | null)?.port ?? 0;
}

/** Ports of other programs count as used. */
async function listenAnew(server: Server, usedPorts: UsedPorts): Promise<void> {
  const count = range.last - range.first + 1;
  const start = randomInt(count);
  for (let i = 0; i < count; i++) {
    const port = range.first + ((start + i) % count);
    if ((await usedPorts.claim(port)) && (await listens(server, port))) return;
  }
  throw new SlipwayError("ports_used_up", `Previews have used every port from ${range.first} to ${range.last}.`);
}

/** False when another program has it. */
async function listens(server: Server, port: number): Promise<boolean> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  server.once("error", reject).once("listening", resolve).listen(port, loopback);
  try {
    await promise;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "EADDRINUSE" || code === "EACCES") return false;
    throw error;
  } finally {
    server.off("error", reject).off("listening", resolve);
  }
  // A failed accept, for instance without free descriptors, is no reason to stop.
  server.on("error", () => undefined);
  return true;
}
