import { chmodSync, mkdirSync } from "node:fs";
import type { ClientHttp2Session } from "node:http2";
import { createServer, type Server, type Socket } from "node:net";
import { dirname } from "node:path";
import { splice } from "../../relay/splice.ts";
import { listenAt } from "../../unix-socket.ts";
import type { LinkRequest, Verdict } from "../handshake.ts";
import { answers, asSocket, clientSession, farewell } from "../session.ts";

const mostConnections = 256;
/** How long the holder has to show that it is there, when another one asks. */
const probeMs = 3000;

interface Holding {
  readonly holder: Buffer;
  session: ClientHttp2Session | null;
}

/** The sandbox's channel: a unix socket whose connections go to the host that holds it. It listens only while one does. */
export function createChannel(path: string) {
  let holding: Holding | null = null;
  let server: Server | null = null;
  const sockets = new Set<Socket>();

  const take = (socket: Socket) => {
    socket.on("error", () => socket.destroy());
    const session = holding?.session;
    if (!session || sockets.size >= mostConnections) return void socket.destroy();
    sockets.add(socket.once("close", () => sockets.delete(socket)));
    try {
      splice(socket, asSocket(session.request({ ":method": "POST", ":path": "/" }, { endStream: false })));
    } catch {
      // The session has ended meanwhile.
      socket.destroy();
    }
  };
  const listen = async () => {
    if (server !== null) return;
    // Root's: nothing inside can put a socket of its own in this one's place.
    mkdirSync(dirname(path), { recursive: true, mode: 0o755 });
    chmodSync(dirname(path), 0o755);
    server = createServer({ allowHalfOpen: true }, take);
    await listenAt(server, path, 0o666);
  };
  const release = (mine: Holding) => {
    if (holding !== mine) return;
    holding = null;
    server?.close();
    server = null;
    for (const socket of sockets) socket.destroy();
  };
  return {
    /** Whether the request may have the channel. */
    async decide({ holder }: LinkRequest): Promise<Verdict> {
      const current = holding;
      if (current?.session && !current.holder.equals(holder) && (await answers(current.session, probeMs)))
        return "in_use";
      if (holding !== current) return "in_use";
      current?.session?.destroy();
      if (holding !== null) release(holding);
      holding = { holder, session: null };
      await listen();
      return "welcome";
    },
    /** Takes the connection of the request that was welcome. */
    hold({ holder }: LinkRequest, socket: Socket): void {
      const mine = holding;
      if (mine === null || mine.session !== null || !mine.holder.equals(holder)) return void socket.destroy();
      const session = clientSession(socket, "channel");
      mine.session = session;
      session.on("ping", (payload) => {
        if (!farewell.equals(payload)) return;
        release(mine);
        session.destroy();
      });
      session.once("close", () => release(mine));
    },
  };
}
