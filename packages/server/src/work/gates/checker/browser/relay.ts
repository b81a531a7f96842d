import { connect, createServer, type Socket } from "node:net";

/** Listens where the browser looks for the app, and carries each connection to the host's socket. */
export async function startRelay(socket: string, port: number): Promise<void> {
  const server = createServer({ allowHalfOpen: true }, (browser) => {
    const host = connect({ path: socket, allowHalfOpen: true });
    join(browser, host);
    join(host, browser);
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject).listen(port, "127.0.0.1", resolve);
  });
}

function join(from: Socket, to: Socket): void {
  from.pipe(to);
  from.on("error", () => to.destroy());
  from.on("close", () => to.destroySoon());
}
