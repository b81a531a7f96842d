import { createServer, type Server, type Socket } from "node:net";
import { type Duplex, Transform } from "node:stream";
import { createServer as createTlsServer, type SecureContext } from "node:tls";
import { listenOnLoopback } from "../front.ts";
import { type PortSpec, type TunnelData, tunnelOfH2 } from "../wire.ts";

export interface Tunnels extends AsyncDisposable {
  readonly data: readonly TunnelData[];
  /** Cuts the connections that are open; new ones are taken. */
  cut(): void;
}

export interface TunnelParts {
  /** A certificate for the name that clients dial. */
  readonly certificate: SecureContext;
  /** How long each piece of a stream takes on its way. */
  readonly latencyMs: () => number;
  readonly connect: (port: number) => Promise<Duplex>;
  /** Called with each connection and each piece of data: the sandbox is in use. */
  readonly onUse: () => void;
}

/** The name in the tunnels' certificate. */
export const tunnelHost = "localhost";

/** Each open port of a sandbox at a loopback port of its own: TLS ends there, then bytes go to the port inside. */
export async function openTunnels(ports: readonly PortSpec[], parts: TunnelParts): Promise<Tunnels> {
  const servers: Server[] = [];
  const sockets = new Set<Socket>();
  const relay = (socket: Socket, port: number) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
    void carry(socket, port, parts);
  };
  const data = await Promise.all(
    ports.map(async (spec) => {
      const carried = (socket: Socket) => relay(socket, spec.port);
      const server = spec.unencrypted ? createServer(carried) : createTls(spec, parts.certificate, carried);
      servers.push(server);
      const port = await listenOnLoopback(server);
      const host = tunnelHost;
      const open = { host, port, containerPort: spec.port };
      return spec.unencrypted ? { ...open, unencryptedHost: host, unencryptedPort: port } : open;
    }),
  );
  const cut = () => {
    for (const socket of sockets) socket.destroy();
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
      SNICallback: (_name, done) => done(null, certificate),
      ALPNProtocols: tunnelType === tunnelOfH2 ? ["h2"] : ["http/1.1"],
    },
    onConnection,
  );
  server.on("tlsClientError", () => {});
  return server;
}

async function carry(socket: Socket, port: number, { connect, latencyMs, onUse }: TunnelParts): Promise<void> {
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
  inside.on("close", () => socket.destroy());
  socket.on("close", () => inside.destroy());
  if (socket.destroyed) inside.destroy();
  socket.on("data", onUse);
  socket.pipe(delayed(latencyMs)).pipe(inside).pipe(delayed(latencyMs)).pipe(socket);
}

/** Passes each piece on after the latency, in order, without waiting for the one before. */
function delayed(latencyMs: () => number): Transform {
  return new Transform({
    transform(piece, _encoding, done) {
      const ms = latencyMs();
      if (ms <= 0) {
        this.push(piece);
        done();
        return;
      }
      setTimeout(() => {
        if (!this.destroyed) this.push(piece);
      }, ms);
      done();
    },
    flush(done) {
      const ms = latencyMs();
      if (ms <= 0) done();
      else setTimeout(done, ms);
    },
  });
}
