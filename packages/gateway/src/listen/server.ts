import type { IncomingMessage, Server, ServerResponse } from "node:http";
import { Duplex } from "node:stream";
import { type RunId, SlipwayError } from "@slipway/contract";
import { identify, tokenOf } from "../admit/identity.ts";
import type { RunTokens } from "../admit/run-tokens.ts";
import { answerError } from "../channel/answer.ts";
import type { RunChannel } from "../channel/channel.ts";
import { anthropic } from "../dialects/anthropic/index.ts";
import { askedAt } from "../dialects/index.ts";
import { type ExchangeParts, sendError } from "./exchange.ts";
import { createHttpServer } from "./http-server.ts";
import { type ListenAddress, type Listener, listenOn } from "./listen.ts";
import { answerJson, answerModelCall, countTokens, listModels } from "./model-requests.ts";
import type { Runs } from "./runs.ts";

export interface ServerParts extends ExchangeParts {
  readonly runs: Runs;
  readonly tokens: RunTokens;
  readonly channel: RunChannel;
}

/** Disposing it drops all connections, and resolves when the aborted requests are settled. */
export interface GatewayServer extends AsyncDisposable {
  /** Serves a connection from that run's sandbox. Refuses the token of any other run on it. */
  serve(connection: Duplex, run: RunId): void;
  /** Returns the client end of a connection inside this process. Tokens identify the caller. */
  connect(): Duplex;
  /** Serves any client. Tokens identify the caller. */
  listen(address: ListenAddress): Promise<Listener>;
}

const maxConnectionsPerRun = 2048;

export function createGatewayServer(parts: ServerParts): GatewayServer {
  const connected = new WeakMap<Duplex, RunId>();
  const open = new Map<Duplex, RunId | undefined>();
  const pending = new Set<Promise<void>>();
  const track = (connection: Duplex) => {
    if (!open.has(connection)) open.set(connection, undefined);
    connection.once("close", () => open.delete(connection));
  };
  const newServer = (): Server => {
    const server = createHttpServer((request, response) => {
      const handled = handle(parts, request, response, connected.get(request.socket))
        .catch((error) => {
          response.destroy();
          parts.onDefect(error);
        })
        .finally(() => pending.delete(handled));
      pending.add(handled);
    });
    return server.on("connection", track);
  };
  const piped = newServer();
  const listeners = new Set<Listener>();
  return {
    serve(connection, run) {
      if (countOf(open, run) >= maxConnectionsPerRun) return void connection.destroy();
      connected.set(connection, run);
      open.set(connection, run);
      piped.emit("connection", connection);
    },
    connect() {
      const [client, connection] = connectedPair();
      piped.emit("connection", connection);
      return client;
    },
    async listen(address) {
      const listener = await listenOn(newServer(), address);
      listeners.add(listener);
      return listener;
    },
    async [Symbol.asyncDispose]() {
      for (const connection of open.keys()) connection.destroy();
      piped.close();
      await Promise.all([...listeners].map((listener) => listener.close()));
      await Promise.all(pending);
    },
  };
}

async function handle(
  parts: ServerParts,
  request: IncomingMessage,
  response: ServerResponse,
  connected: RunId | undefined,
): Promise<void> {
  const path = (request.url ?? "/").replace(/\?.*$/s, "");
  if (path === "/" || path === "/health") return answerHealth(parts, request, response, path);
  try {
    const id = identify(request, parts.tokens, connected);
    if (path.startsWith("/run/")) return await parts.channel.handle(id, request, response);
    await answerRun(parts, request, response, { id, path });
  } catch (error) {
    if (!(error instanceof SlipwayError)) throw error;
    if (path.startsWith("/run/")) answerError(response, error);
    else sendError(response, askedAt(path)?.dialect ?? anthropic, error);
  }
}

async function answerRun(
  parts: ServerParts,
  request: IncomingMessage,
  response: ServerResponse,
  { id, path }: { readonly id: RunId; readonly path: string },
): Promise<void> {
  const run = parts.runs.get(id);
  const asked = request.method === "POST" ? askedAt(path) : undefined;
  if (asked !== undefined) {
    const call = { run, asked, request, response };
    return asked.wants === "count" ? countTokens(call) : answerModelCall(parts, call);
  }
  if (request.method === "GET" && path === "/v1/models") return listModels(run, response);
  throw new SlipwayError("invalid_request", `the gateway has no ${request.method} ${path.slice(0, 100)}`);
}

/** Anyone may learn that the gateway is up. Its health is for the host only. */
function answerHealth(parts: ServerParts, request: IncomingMessage, response: ServerResponse, path: string): void {
  const isHost = path === "/health" && parts.tokens.isHost(tokenOf(request) ?? "");
  answerJson(response, isHost ? { ok: true, providers: parts.health.snapshot() } : { ok: true });
}

function countOf(open: ReadonlyMap<Duplex, RunId | undefined>, run: RunId): number {
  let count = 0;
  for (const owner of open.values()) if (owner === run) count++;
  return count;
}

/** Like a socket: a write reaches the reader at once, and a close arrives after everything written before it. */
function connectedPair(): readonly [client: Duplex, server: Duplex] {
  const endOf = (other: () => Duplex) =>
    new Duplex({
      read() {},
      write(chunk, _, done) {
        other().push(chunk);
        done();
      },
      final(done) {
        other().push(null);
        done();
      },
    });
  const client: Duplex = endOf(() => server);
  const server: Duplex = endOf(() => client);
  client.once("close", () => server.destroy());
  server.once("close", () => setImmediate(() => client.push(null)));
  return [client, server];
}
