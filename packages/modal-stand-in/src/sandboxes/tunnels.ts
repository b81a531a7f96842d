import { createServer, type Server, type Socket } from "node:net";
import { type Duplex, Transform } from "node:stream";
import { createServer as createTlsServer, type SecureContext } from "node:tls";
import { listenOnLoopback } from "../front.ts";
import { type PortSpec, type TunnelData, tunnelOfH2 } from "../wire.ts";

export interface Tunnels extends AsyncDisposable {
  readonly data: readonly TunnelData[];
  /** Cuts the connections that are open, or only those that have lost bytes; new ones are taken. */
  cut(which?: "all" | "lossy"): void;
}

export interface TunnelParts {
  /** A certificate for the name that clients dial. */
  readonly certificate: SecureContext;
  /** How long each piece of a stream takes on its way. */
  readonly latencyMs: () => number;
  /** While it is, pieces are lost, and connections stay open. */
  readonly isStalled: () => boolean;
  readonly connect: (port: number) => Promise<Duplex>;
  /** Called with each connection and each piece of data: the sandbox is in use. */
  readonly onUse: () => void;
}

/** Whoever has sent all may still read. */
const halfOpen = { allowHalfOpen: true, noDelay: true };

/** The name in the tunnels' certificate. */
export const tunnelHost = "localhost";

/** Each open port of a sandbox at a loopback port of its own: TLS ends there, then bytes go to the port inside. */
export async function openTunnels(ports: readonly PortSpec[], parts: TunnelParts): Promise<Tunnels> {
  const servers: Server[] = [];
  /** Also those whose TLS has not been agreed on. */
  const connections = new Set<Socket>();
  const lossy = new Set<Socket>();
  const track = (connection: Socket) => {
    connections.add(connection);
    connection.on("close", () => connections.delete(connection));
  };
  const relay = (socket: Socket, port: number) => {
    socket.on("close", () => lossy.delete(socket));
    void carry(socket, port, parts, () => lossy.add(socket));
  };
  const data = await Promise.all(
    ports.map(async (spec) => {
      const carried = (socket: Socket) => relay(socket, spec.port);
      const server = spec.unencrypted ? createServer(halfOpen, carried) : createTls(spec, parts.certificate, carried);
      servers.push(server.on("connection", track));
      const port = await listenOnLoopback(server);
      const host = tunnelHost;
      const open = { host, port, containerPort: spec.port };
      return spec.unencrypted ? { ...open, unencryptedHost: host, unencryptedPort: port } : open;
    }),
  );
  const cut = (which: "all" | "lossy" = "all") => {
    for (const socket of which === "all" ? connections : lossy) socket.destroy();
  };
  return {
    data,
    cut,
    async [Symbol.asyncDispose]() {
      const closed = servers.map((server) => new Promise((resolve) => server.close(resolve)));
      cut();
      await Promise.all(closed);
    },
  };
}

function createTls(
  { tunnelType }: PortSpec,
  certificate: SecureContext,
  onConnection: (socket: Socket) => void,
): Server {
  const server = createTlsServer(
    {
      ...halfOpen,
      SNICallback: (_name, done) => done(null, certificate),
      ALPNProtocols: tunnelType === tunnelOfH2 ? ["h2"] : ["http/1.1"],
    },
    onConnection,
  );
  server.on("tlsClientError", () => {});
  return server;
}

async function carry(socket: Socket, port: number, parts: TunnelParts, onLoss: () => void): Promise<void> {
  const { connect, onUse } = parts;
  // Whoever dials may send at once, and may be gone at any time.
  socket.on("error", () => {});
  onUse();
  let inside: Duplex;
  try {
    inside = await connect(port);
  } catch {
    socket.destroy();
    return;
  }
  inside.on("error", () => {});
  const way = () => delayed({ ...parts, onLoss });
  socket.pipe(way()).pipe(inside).pipe(way()).pipe(socket);
  // Each way ends by itself, when all of it has arrived; what breaks takes the other end with it.
  inside.on("close", () => inside.readableEnded || socket.destroy());
  socket.on("close", () => {
    if (!socket.readableEnded || inside.writableFinished) inside.destroy();
    else inside.on("finish", () => inside.destroy());
  });
  if (socket.destroyed) inside.destroy();
}

interface Way extends Pick<TunnelParts, "latencyMs" | "isStalled" | "onUse"> {
  readonly onLoss: () => void;
}

/** Passes each piece on after the latency, in order, without waiting for the one before. Loses it while stalled. */
function delayed({ latencyMs, isStalled, onUse, onLoss }: Way): Transform {
  const waiting: { release: () => void; dueMs: number }[] = [];
  let timer: NodeJS.Timeout | undefined;
  const releaseDue = () => {
    timer = undefined;
    for (let [first] = waiting; first !== undefined; [first] = waiting) {
      const leftMs = first.dueMs - performance.now();
      if (leftMs > 0) {
        // Rounded up: a timer counts whole milliseconds.
        timer = setTimeout(releaseDue, Math.ceil(leftMs));
        return;
      }
      waiting.shift();
      first.release();
    }
  };
  const later = (release: () => void) => {
    waiting.push({ release, dueMs: performance.now() + latencyMs() });
    if (timer === undefined) releaseDue();
  };
  return new Transform({
    transform(piece, _encoding, done) {
      onUse();
      if (isStalled()) onLoss();
      else later(() => this.push(piece));
      done();
    },
    // The end comes after the last piece.
    flush: (done) => later(done),
    destroy(error, done) {
      clearTimeout(timer);
      done(error);
    },
  });
}
