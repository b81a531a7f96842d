import { randomBytes } from "node:crypto";
import type { Server } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { SandboxId } from "@slipway/contract";
import type { ExchangeLimits } from "../relay/exchange.ts";
import { tokenParameter } from "./access.ts";
import { createEntrance } from "./entrance.ts";

export interface PreviewOptions {
  /**
   * A new connection to a port inside a sandbox. Rejects with a SlipwayError: `connection_refused` when nothing listens,
   * `sandbox_not_running` and its like when there is nothing to connect to.
   */
  readonly connect: (sandbox: SandboxId, port: number, options: { signal: AbortSignal }) => Promise<Duplex>;
  readonly limits?: Partial<PreviewLimits>;
}

export interface PreviewLimits extends ExchangeLimits {
  /** Per address. */
  readonly connections: number;
  readonly headersMs: number;
}

export interface PreviewRequest {
  readonly sandbox: SandboxId;
  /** Inside the sandbox. */
  readonly port: number;
  /** The address it had before: kept when still free. */
  readonly hostPort?: number;
  readonly token?: string;
}

export interface PreviewAddress {
  readonly sandbox: SandboxId;
  readonly port: number;
  readonly hostPort: number;
  readonly token: string;
  /** Without the token. */
  readonly url: string;
  /** With the token, for the first visit. */
  readonly visitUrl: string;
}

export interface Preview extends AsyncDisposable {
  /** The address of a sandbox's port, listening. The same while it is open. */
  open(request: PreviewRequest): Promise<PreviewAddress>;
  /** Closes the address of one port, or all of the sandbox's. */
  release(sandbox: SandboxId, port?: number): Promise<void>;
  close(): Promise<void>;
}

const loopback = "127.0.0.1";
const defaultLimits: PreviewLimits = {
  connections: 512,
  headersMs: 15_000,
  // Event streams and sockets of development servers may be silent for long.
  idleMs: 60 * 60_000,
  headerBytes: 64 * 1024,
  bodyBytes: 4 * 1024 ** 3,
};

interface Listening {
  readonly address: PreviewAddress;
  close(): Promise<void>;
}

/** Reverse proxies into sandboxes, one loopback port for each of their ports. */
export function createPreview({ connect, limits: given }: PreviewOptions): Preview {
  const limits = { ...defaultLimits, ...given };
  const entrances = new Map<string, Promise<Listening>>();

  const open = async ({ sandbox, port, hostPort = 0, token = newToken() }: PreviewRequest): Promise<Listening> => {
    const sockets = new Set<Socket>();
    const server: Server = createEntrance({
      port,
      token,
      limits,
      connect: (signal) => connect(sandbox, port, { signal }),
      hostPort: () => portOf(server),
    });
    server.on("connection", (socket) => {
      sockets.add(socket);
      socket.once("close", () => sockets.delete(socket));
    });
    await listen(server, hostPort).catch((error: NodeJS.ErrnoException) => {
      if (hostPort === 0 || (error.code !== "EADDRINUSE" && error.code !== "EACCES")) throw error;
      return listen(server, 0);
    });
    const url = `http://${loopback}:${portOf(server)}/`;
    const visitUrl = `${url}?${tokenParameter}=${token}`;
    const close = async () => {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      for (const socket of sockets) socket.destroy();
      await closed;
    };
    return { address: { sandbox, port, hostPort: portOf(server), token, url, visitUrl }, close };
  };
  const release = async (matches: (key: string) => boolean) => {
    const leaving = [...entrances].filter(([key]) => matches(key));
    for (const [key] of leaving) entrances.delete(key);
    await Promise.allSettled(leaving.map(async ([, listening]) => (await listening).close()));
  };
  const close = () => release(() => true);
  return {
    open: async (request) => {
      const key = `${request.sandbox}:${request.port}`;
      const listening = entrances.get(key) ?? open(request);
      entrances.set(key, listening);
      try {
        return (await listening).address;
      } catch (error) {
        if (entrances.get(key) === listening) entrances.delete(key);
        throw error;
      }
    },
    release: (sandbox, port) =>
      release((key) => (port === undefined ? key.startsWith(`${sandbox}:`) : key === `${sandbox}:${port}`)),
    close,
    [Symbol.asyncDispose]: close,
  };
}

/** Safe in an address and in a cookie. */
function newToken(): string {
  return randomBytes(24).toString("base64url");
}

function portOf(server: Server): number {
  return (server.address() as AddressInfo | null)?.port ?? 0;
}

async function listen(server: Server, port: number): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  server.once("error", reject);
  server.once("listening", resolve);
  server.listen(port, loopback);
  try {
    await promise;
  } finally {
    server.off("error", reject);
    server.off("listening", resolve);
  }
  // A failed accept, for instance without free descriptors, is no reason to stop.
  server.on("error", () => undefined);
}
