import { once } from "node:events";
import { createServer, type ServerHttp2Session } from "node:http2";
import { type AddressInfo, isIP } from "node:net";
import { createEndpointHandler, type VirtualObjectDefinition } from "@restatedev/restate-sdk";
import { SlipwayError } from "@slipway/contract";

/** Where Restate finds the handlers of this process. */
export interface Endpoint extends AsyncDisposable {
  readonly uri: string;
  /** The number of requests refused for their signature. */
  readonly refused: number;
}

export interface EndpointOptions {
  readonly objects: readonly VirtualObjectDefinition<string, unknown>[];
  /** The public key of the Restate whose requests are accepted. */
  readonly identityKey: string;
  /** An address of this machine that Restate can reach. */
  readonly host?: string | undefined;
  readonly warn: (message: string) => void;
}

export async function serveEndpoint({
  objects,
  identityKey,
  host = "127.0.0.1",
  warn,
}: EndpointOptions): Promise<Endpoint> {
  const handler = createEndpointHandler({
    services: [...objects],
    identityKeys: [identityKey],
    // Its other messages are about single calls: lost connections, which are normal, and failed turns, reported elsewhere.
    logger: ({ level, source }, ...message) => {
      if (source === "SYSTEM" && (level === "warn" || level === "error")) warn(message.map(String).join(" "));
    },
  });
  let refused = 0;
  const server = createServer((request, response) => {
    response.once("finish", () => {
      if (response.statusCode === 401) refused += 1;
    });
    handler(request, response);
  });
  const sessions = new Set<ServerHttp2Session>();
  server.on("session", (session) => {
    sessions.add(session);
    session.once("close", () => sessions.delete(session));
  });
  server.listen({ host, port: 0 });
  await once(server, "listening").catch((cause) => {
    const message = `cannot serve Restate's handlers on ${host}: ${cause.message}`;
    throw new SlipwayError("provider_unavailable", message, { cause });
  });
  // A failed accept, for instance without free descriptors, must not stop the server.
  server.on("error", () => undefined);
  const { port } = server.address() as AddressInfo;
  return {
    uri: `http://${isIP(host) === 6 ? `[${host}]` : host}:${port}`,
    get refused() {
      return refused;
    },
    async [Symbol.asyncDispose]() {
      const closed = once(server, "close");
      server.close();
      for (const session of sessions) session.destroy();
      await closed;
    },
  };
}
