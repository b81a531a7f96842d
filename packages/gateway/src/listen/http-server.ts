import { createServer, type RequestListener, type Server } from "node:http";

/** Agents think for a while between requests. A connection that closes under a request costs them a retry. */
const keepAliveMs = 75_000;
const usualHeadMs = 60_000;

/** Closes connections, including adopted ones, that do not send a whole request head in time. */
export function createHttpServer(listener: RequestListener, headMs = usualHeadMs): Server {
  const server = createServer({ headersTimeout: headMs, connectionsCheckingInterval: headMs / 2 }, listener);
  server.keepAliveTimeout = keepAliveMs;
  // Node starts checking connections on `listening`, which a server with only adopted connections never emits.
  server.emit("listening");
  return server;
}
