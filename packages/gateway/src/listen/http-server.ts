import { createServer, type RequestListener, type Server } from "node:http";

/** Agents think for a while between requests; a connection that closes under a request costs them a retry. */
const keepAliveMs = 75_000;
const usualHeadMs = 60_000;

/** Ends connections on which no whole head of a request comes in that time, also of those that are handed to it. */
export function createHttpServer(listener: RequestListener, headMs = usualHeadMs): Server {
  const server = createServer({ headersTimeout: headMs, connectionsCheckingInterval: headMs / 2 }, listener);
  server.keepAliveTimeout = keepAliveMs;
  // Node begins to look at connections when it listens, which a server that is only handed some never does.
  server.emit("listening");
  return server;
}
