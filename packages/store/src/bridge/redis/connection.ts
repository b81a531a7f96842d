import { type BuildId, SlipwayError } from "@slipway/contract";
import { createClient, ErrorReply } from "redis";
import { checkAddress, type RedisAddress } from "./address.ts";

const connectTimeoutMs = 5000;
const maxReconnectMs = 1000;
/** A silent loss of the connection shows after two of these. */
const pingMs = 5000;

type RedisClient = ReturnType<typeof newClient>;

/** One connection that reconnects by itself. */
export interface RedisConnection {
  readonly client: RedisClient;
  readonly connected: boolean;
  /** The channel of a build's news. */
  channelOf(build: BuildId): string;
  close(): Promise<void>;
}

/**
 * Waits for the first answer. A server that refuses means a wrong setting; an unreachable one may come up later. Warns
 * when the connection is lost, and when it is back.
 */
export async function connectRedis(
  { url, prefix = "slipway:" }: RedisAddress,
  warn: (message: string) => void = () => {},
): Promise<RedisConnection> {
  checkAddress(url, prefix);
  const client = newClient(url);
  const firstFailure = new Promise<Error>((resolve) => client.on("error", resolve));
  const connecting = client.connect().then(
    () => undefined,
    (error: Error) => error,
  );
  const failure = await Promise.race([connecting, firstFailure]);
  if (failure instanceof ErrorReply) {
    client.destroy();
    throw new SlipwayError("invalid_settings", `REDIS_URL: the server refuses: ${failure.message}`, { cause: failure });
  }
  tellOfLosses(client, failure, warn);
  return {
    client,
    get connected() {
      return client.isReady;
    },
    channelOf: (build) => `${prefix}{${build}}:news`,
    async close() {
      if (client.isOpen) client.destroy();
    },
  };
}

/** Warns once per loss, with its first failure. */
function tellOfLosses(client: RedisClient, failure: Error | undefined, warn: (message: string) => void): void {
  let isLost = false;
  const lose = ({ message }: Error) => {
    if (isLost || client.isReady || !client.isOpen) return;
    isLost = true;
    warn(`REDIS_URL: no Redis answers (${message}); builds go on over the database until one does`);
  };
  if (failure !== undefined) lose(failure);
  client.on("error", lose);
  client.on("ready", () => {
    if (isLost) warn("REDIS_URL: Redis answers, and is used from now on");
    isLost = false;
  });
}

function newClient(url: string) {
  return createClient({
    url,
    disableOfflineQueue: true,
    pingInterval: pingMs,
    socket: {
      connectTimeout: connectTimeoutMs,
      socketTimeout: 2 * pingMs,
      reconnectStrategy: (retries) => Math.min(50 * 2 ** retries, maxReconnectMs),
    },
  });
}
