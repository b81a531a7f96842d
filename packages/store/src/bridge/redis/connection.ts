import { type BuildId, SlipwayError } from "@slipway/contract";
import { createClient, ErrorReply } from "redis";
import { checkAddress, type RedisAddress } from "./address.ts";
import { bridgeScripts } from "./scripts.ts";

const connectTimeoutMs = 5000;
const maxReconnectMs = 1000;
/** A connection that has died in silence is noticed after two of these. */
const pingMs = 5000;

export type RedisClient = ReturnType<typeof newClient>;

/** One connection, which comes back by itself. */
export interface RedisConnection {
  readonly client: RedisClient;
  readonly connected: boolean;
  /** All names of a build have the same hash tag: a cluster keeps them in one place. */
  key(build: BuildId, part: KeyPart): string;
  close(): Promise<void>;
}

export const keyParts = ["log", "keys", "consumers", "dead-letters", "claims"] as const;
export type KeyPart = (typeof keyParts)[number] | "news";

/**
 * Waits for the first answer. A server that says no is a wrong setting; one that can not be reached may come yet, and what
 * is asked of it until then fails with `bridge_unavailable`. `warn` is told when there is no connection, and when there is
 * one again.
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
    key: (build, part) => `${prefix}{${build}}:${part}`,
    async close() {
      if (client.isOpen) client.destroy();
    },
  };
}

/** What a call of Redis answers, with typed failures. What the server refuses for good is a defect. */
export async function asked<T>(call: Promise<T>): Promise<T> {
  try {
    return await call;
  } catch (error) {
    if (!(error instanceof Error) || (error instanceof ErrorReply && !passing.test(error.message))) throw error;
    throw new SlipwayError("bridge_unavailable", `Redis does not answer: ${error.message}`, { cause: error });
  }
}

/** Replies of a server that is starting, full, a replica, or in another's hands. */
const passing = /^(LOADING|MISCONF|OOM|READONLY|BUSY|MASTERDOWN|CLUSTERDOWN|TRYAGAIN|NOREPLICAS)/;

/** Each loss once, with the first failure of it. */
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
    scripts: bridgeScripts,
    disableOfflineQueue: true,
    pingInterval: pingMs,
    socket: {
      connectTimeout: connectTimeoutMs,
      socketTimeout: 2 * pingMs,
      reconnectStrategy: (retries) => Math.min(50 * 2 ** retries, maxReconnectMs),
    },
  });
}
