import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import { type Duplex, pipeline } from "node:stream";
import { printable } from "@slipway/contract";

/** An address on this machine's loopback whose connections are carried to where `connect` leads. */
export interface Forwarder extends AsyncDisposable {
  readonly port: number;
}

export interface ForwarderOptions {
  /** The port it had before, or 0. Another one is taken when somebody else has it. */
  readonly port: number;
  /** Null: nothing is there to be shown. */
  connect(): Promise<Duplex | null>;
  /** What whoever looks is told meanwhile. */
  waitsFor(): string;
}

const loopback = "127.0.0.1";
const mostConnections = 512;
const requestMs = 10_000;
const refreshSeconds = 2;

export const addressOf = (port: number) => `http://${loopback}:${port}/`;

export async function openForwarder({ port, connect, waitsFor }: ForwarderOptions): Promise<Forwarder> {
  const sockets = new Set<Socket>();
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket)).on("error", () => socket.destroy());
    void carry(socket, connect, waitsFor);
  });
  server.maxConnections = mostConnections;
  await listen(server, port).catch((error: NodeJS.ErrnoException) => {
    if (port === 0 || (error.code !== "EADDRINUSE" && error.code !== "EACCES")) throw error;
    return listen(server, 0);
  });
  return {
    port: (server.address() as AddressInfo).port,
    async [Symbol.asyncDispose]() {
      const closed = new Promise((resolve) => server.close(resolve));
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}

async function carry(
  socket: Socket,
  connect: ForwarderOptions["connect"],
  waitsFor: ForwarderOptions["waitsFor"],
): Promise<void> {
  const inside = await connect().catch(() => null);
  if (inside === null) return answer(socket, waitsFor());
  const end = (error: unknown) => {
    if (!error) return;
    socket.destroy();
    inside.destroy();
  };
  if (socket.destroyed) return void inside.destroy();
  pipeline(socket, inside, end);
  pipeline(inside, socket, end);
}

/** After the request has come: who is answered before that may never read it. */
function answer(socket: Socket, text: string): void {
  const shown = printable(text).replace(/[<&]/g, (sign) => (sign === "<" ? "&lt;" : "&amp;"));
  const body = `<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="${refreshSeconds}"><title>Slipway preview</title><pre>${shown}</pre>\n`;
  const head = [
    "HTTP/1.1 503 Service Unavailable",
    `Retry-After: ${refreshSeconds}`,
    "Content-Type: text/html; charset=utf-8",
    `Content-Length: ${Buffer.byteLength(body)}`,
    "Content-Security-Policy: default-src 'none'",
    "Cache-Control: no-store",
    "Connection: close",
  ];
  socket.setTimeout(requestMs, () => socket.destroy());
  socket.once("data", () => socket.end(`${head.join("\r\n")}\r\n\r\n${body}`));
  socket.once("end", () => socket.end());
}

async function listen(server: Server, port: number): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  server.once("error", reject).once("listening", resolve).listen(port, loopback);
  try {
    await promise;
  } finally {
    server.off("error", reject).off("listening", resolve);
  }
  // A failed accept, for instance without free descriptors, is no reason to stop.
  server.on("error", () => undefined);
}
