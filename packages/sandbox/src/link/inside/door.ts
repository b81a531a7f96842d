import { createServer, type Server, type Socket } from "node:net";
import { admit, type LinkRequest, type Verdict } from "../handshake.ts";

export interface DoorOptions {
  readonly key: Buffer;
  readonly port: number;
  /** Asked only about a request that has the key. */
  readonly decide: (request: LinkRequest) => Promise<Verdict>;
  readonly welcome: (request: LinkRequest, socket: Socket) => void;
}

const handshakeMs = 10_000;
/** Anybody may connect. A newcomer beyond this costs the oldest one its place: so slow ones keep nobody out. */
const mostStrangers = 256;

/** Listens to the whole world, and lets in who has the key. */
export function openDoor({ key, port, decide, welcome }: DoorOptions): Promise<Server> {
  const strangers = new Set<Socket>();
  const greet = async (socket: Socket) => {
    socket.on("error", () => socket.destroy());
    const timer = setTimeout(() => socket.destroy(), handshakeMs);
    strangers.add(socket);
    if (strangers.size > mostStrangers) for (const oldest of strangers) if (evict(oldest)) break;
    socket.once("close", () => strangers.delete(socket));
    try {
      const request = await admit(socket, key, decide);
      if (request === undefined || socket.destroyed) return void socket.destroySoon();
      welcome(request, socket);
    } finally {
      clearTimeout(timer);
      strangers.delete(socket);
    }
  };
  const evict = (socket: Socket) => {
    socket.destroy();
    return strangers.delete(socket);
  };
  const server = createServer({ noDelay: true, keepAlive: true }, (socket) => {
    greet(socket).catch(() => socket.destroy());
  });
  return listenEverywhere(server, port);
}

/** On IPv6 too, so that nobody inside can take the same port of the other family. */
export async function listenEverywhere<Listener extends Server>(server: Listener, port: number): Promise<Listener> {
  const listen = (host: string) =>
    new Promise<void>((resolve, reject) => {
      server.once("error", reject);
      server.listen({ port, host }, () => {
        server.off("error", reject);
        resolve();
      });
    });
  await listen("::").catch(async (error: NodeJS.ErrnoException) => {
    if (error.code !== "EAFNOSUPPORT" && error.code !== "EADDRNOTAVAIL") throw error;
    await listen("0.0.0.0");
  });
  // A failed accept, for instance without free descriptors, is no reason to stop.
  server.on("error", () => undefined);
  return server;
}
