import { connect, createServer, type Socket } from "node:net";

/** The address that clients dial. It carries bytes to the server behind it, so that connections can be cut at any time. */
export interface Front extends AsyncDisposable {
  readonly port: number;
  /** Ends every connection at once. Clients dial again. */
  cut(): void;
}

export async function openFront(socketPath: string, port: number): Promise<Front> {
  const sockets = new Set<Socket>();
  const server = createServer((client) => {
    const inner = connect(socketPath);
    for (const [socket, other] of [
      [client, inner],
      [inner, client],
    ] as const) {
      sockets.add(socket);
      socket.setNoDelay(true);
      socket.on("error", () => {});
      socket.on("close", () => {
        sockets.delete(socket);
        other.destroy();
      });
    }
    client.pipe(inner).pipe(client);
  });
  const cut = () => {
    for (const socket of sockets) socket.destroy();
  };
  return {
    port: await listenOnLoopback(server, port),
    cut,
    async [Symbol.asyncDispose]() {
      const closed = new Promise((resolve) => server.close(resolve));
      cut();
      await closed;
    },
  };
}

export async function listenOnLoopback(server: ReturnType<typeof createServer>, port = 0): Promise<number> {
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, "127.0.0.1", resolve);
  });
  return (server.address() as { port: number }).port;
}
