import type { Bridge } from "@slipway/engine";
import type { Database } from "../database/open.ts";
import type { Clock } from "./clock.ts";
import type { RedisAddress } from "./redis/address.ts";
import { openSqlBridge } from "./sql/bridge.ts";

export interface BridgeSettings {
  readonly database: Database;
  readonly clock: Clock;
  /** Without it, the bridge polls for messages of other processes. */
  readonly redis?: RedisAddress | undefined;
  readonly pollMs?: number | undefined;
  /** Hears of the loss and the return of Redis. */
  readonly warn?: ((message: string) => void) | undefined;
}

/**
 * The bridge of a server. The database is the truth, Redis makes it quick. Without Redis, subscribers poll the database.
 * When Redis comes back, they read what they missed and go on over it.
 */
export async function openBridge({ redis, warn, ...settings }: BridgeSettings): Promise<Bridge> {
  if (redis === undefined) return await openSqlBridge(settings);
  // Loaded on first use.
  const [{ connectRedis }, { createRedisCourier }] = await Promise.all([
    import("./redis/connection.ts"),
    import("./redis/courier.ts"),
  ]);
  const connection = await connectRedis(redis, warn);
  try {
    return await openSqlBridge({ ...settings, courier: createRedisCourier(connection) });
  } catch (error) {
    await connection.close();
    throw error;
  }
}
