import { createServer, type Server } from "node:http";
import type { Socket } from "node:net";
import { networkInterfaces } from "node:os";
import type { Duplex } from "node:stream";
import type { NetworkPolicy } from "@slipway/contract";
import { listenAt } from "../../../../unix-socket.ts";
import type { CertificateAuthority } from "./authority.ts";
import { createConnectionHandlers } from "./connections.ts";
import { type DialAddresses, dial } from "./dial.ts";
import { createGate } from "./gate.ts";
import { boundedResolve, type Resolve, resolveBySystem } from "./lookup.ts";
import { createRefusalLedger, type Refusal } from "./refusals.ts";
import { createRequestHandlers, type Opened } from "./requests.ts";
import { compileRules, type Destination } from "./rules.ts";

export interface EgressOptions {
  readonly socketPath: string;
  readonly socketMode?: number;
  readonly policy: NetworkPolicy;
  /** The host's package registries, for policies with `registries`. */
  readonly registries?: readonly Destination[];
  readonly certificateAuthority: CertificateAuthority;
  /** Called at a bounded rate, however many refusals there are. */
  readonly onRefused: (refusal: Refusal) => void;
  readonly resolve?: Resolve;
  readonly dial?: DialAddresses;
  /** The host's own addresses, closed like private ones. */
  readonly ownAddresses?: () => readonly string[];
  /** Authorities for the servers of injected hosts, instead of Node's. */
  readonly upstreamCa?: string | readonly string[];
  readonly limits?: Partial<EgressLimits>;
}

export interface EgressLimits {
  /** Limit of clients, and of connections to the outside. */
  readonly connections: number;
  readonly connectMs: number;
  readonly idleMs: number;
  /** From the first byte of a request, or of a handshake, to its last. */
  readonly headersMs: number;
  readonly headerBytes: number;
  readonly bodyBytes: number;
}

export interface EgressStats {
  /** Clients connected now. */
  readonly clients: number;
  /** Connections to the outside now. */
  readonly upstream: number;
  /** Clients turned away because there were too many. */
  readonly dropped: number;
  readonly refused: number;
}

export interface Egress {
  /** Applies at once. Cuts open connections that it does not allow. */
  setPolicy(policy: NetworkPolicy): void;
  stats(): EgressStats;
  /** Cuts all connections and removes the socket. */
  close(): Promise<void>;
}

const defaultLimits: EgressLimits = {
  connections: 256,
  connectMs: 10_000,
  idleMs: 5 * 60_000,
  headersMs: 15_000,
  headerBytes: 32 * 1024,
  bodyBytes: 4 * 1024 ** 3,
};
const lookupsAtOnce = 8;

/**
 * The only way out of a sandbox: HTTP proxy and SOCKS5 on one unix socket. All input is hostile. Replaces a stale
 * socket; the caller makes sure that no other egress uses the path.
 */
export async function createEgress(options: EgressOptions): Promise<Egress> {
  const { socketPath, socketMode = 0o600, registries, certificateAuthority, upstreamCa } = options;
  const limits = { ...defaultLimits, ...options.limits };
  const counts = { dropped: 0, refused: 0 };
  const refusals = createRefusalLedger(options.onRefused);
  const gate = createGate({
    rules: compileRules(options.policy, registries),
    resolve: boundedResolve(options.resolve ?? resolveBySystem, lookupsAtOnce, limits.connectMs),
    dial: options.dial ?? dial,
    ownAddresses: options.ownAddresses ?? addressesOfHost,
    connectMs: limits.connectMs,
    connections: limits.connections,
    onRefused: ({ host, port }, rule) => {
      counts.refused += 1;
      refusals.add(host, port, rule);
    },
  });
  const opened = new WeakMap<Duplex, Opened>();
  const requests = createRequestHandlers({
    gate,
    limits,
    upstreamCa,
    openedFor: (connection) => opened.get(connection),
  });
  const server = createHttpServer(limits);
  const serveHttp = takeConnections(server);
  const connections = createConnectionHandlers({
    gate,
    limits,
    certificateAuthority,
    serveHttp: (connection, openedFor) => {
      if (openedFor) opened.set(connection, openedFor);
      serveHttp(connection);
    },
  });
  const clients = new Set<Socket>();
  server.on("connection", (client) => {
    clients.add(client);
    client.on("error", () => client.destroy());
    client.once("close", () => clients.delete(client));
    guard(connections.onConnection(client), client);
  });
  server.on("drop", () => {
    counts.dropped += 1;
  });
  server.on("request", (request, response) => guard(requests.onRequest(request, response), request.socket));
  server.on("upgrade", (request, client, head) => guard(requests.onUpgrade(request, client, head), client));
  server.on("connect", (request, client, head) => guard(connections.onConnect(request, client, head), client));
  await listenAt(server, socketPath, socketMode);

  const close = async () => {
    const closed = new Promise<void>((resolve) => server.close(() => resolve()));
    gate.close();
    for (const client of clients) client.destroy();
    refusals.flush();
    await closed;
  };
  return {
    setPolicy: (policy) => gate.setRules(compileRules(policy, registries)),
    stats: () => ({ ...counts, clients: clients.size, upstream: gate.open }),
    close,
  };
}

function createHttpServer(limits: EgressLimits): Server {
  const server = createServer({
    insecureHTTPParser: false,
    requireHostHeader: true,
    maxHeaderSize: limits.headerBytes,
    headersTimeout: limits.headersMs,
    // Bodies may take long; idleMs bounds them.
    requestTimeout: 0,
    keepAliveTimeout: limits.idleMs,
    connectionsCheckingInterval: Math.min(1000, limits.headersMs),
    shouldUpgradeCallback: ({ headers }) => headers.upgrade?.toLowerCase() === "websocket",
  });
  server.maxConnections = limits.connections;
  // With a limit, Node silently drops headers past it, even framing. maxHeaderSize bounds them.
  server.maxHeadersCount = 0;
  return server;
}

/** Detaches accepted connections from the HTTP server. The result gives it those that speak HTTP. */
function takeConnections(server: Server): (connection: Duplex) => void {
  const serve = server.listeners("connection");
  server.removeAllListeners("connection");
  return (connection) => {
    for (const listener of serve) listener.call(server, connection);
  };
}

/** A failure with one client affects only that client. */
function guard(work: Promise<void>, client: Duplex): void {
  work.catch(() => client.destroy());
}

function addressesOfHost(): string[] {
  return Object.values(networkInterfaces()).flatMap(
    (all) => all?.map(({ address }) => address.replace(/%.*$/, "")) ?? [],
  );
}
