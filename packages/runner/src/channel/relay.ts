import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";

export interface Relay {
  readonly port: number;
  /** Cuts open connections. */
  close(): Promise<void>;
}

const maxConnections = 512;

/**
 * Listens on the sandbox's loopback and forwards each connection to the run socket, for agents that cannot dial a unix
 * socket. While the host is away, it closes connections at once.
 */
export async function startRelay(socketPath: string): Promise<Relay> {
  const open = new Set<Socket>();
  const server = createServer({ allowHalfOpen: true, noDelay: true }, (client) => {
    const upstream = connect({ path: socketPath, allowHalfOpen: true });
    for (const socket of [client, upstream]) {
      open.add(socket);
      socket.on("close", () => open.delete(socket));
    }
    join(client, upstream);
  });
  server.maxConnections = maxConnections;
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    port: (server.address() as AddressInfo).port,
    async close() {
      const closed = once(server, "close");
      server.close();
      for (const socket of open) socket.destroy();
      await closed;
    },
  };
}

/** Passes on one side's end and keeps the other direction open. A failure of one side fails both. */
function join(client: Socket, upstream: Socket): void {
  const cut = () => {
    client.resetAndDestroy();
    upstream.destroy();
  };
  for (const socket of [client, upstream]) {
    socket.on("error", cut);
    socket.on("close", () => {
      // After a clean end, the other side still has to write what it received.
      if (!socket.readableEnded || !socket.writableFinished) cut();
    });
  }
  client.pipe(upstream);
  upstream.pipe(client);
}
