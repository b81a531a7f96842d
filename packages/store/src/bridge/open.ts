import type { Bridge } from "@slipway/engine";
import type { Database } from "../database/open.ts";
import type { Clock } from "./clock.ts";
import type { RedisAddress } from "./redis/address.ts";
import { openSqlBridge } from "./sql/bridge.ts";

export interface BridgeSettings {
  readonly database: Database;
  readonly clock: Clock;
  /** Without it, other processes' messages are found by looking for them. */
  readonly redis?: RedisAddress | undefined;
  readonly pollMs?: number | undefined;
  /** Redis was lost, or is back. */
  readonly warn?: ((message: string) => void) | undefined;
}

/**
 * The bridge of a server: the database is the truth, Redis makes it quick. Without Redis, be it lost or never there,
 * subscribers look into the database; when it is back they read what they have missed and go on over Redis.
 */
export async function openBridge({ redis, warn, ...settings }: BridgeSettings): Promise<Bridge> {
  if (redis === undefined) return await openSqlBridge(settings);
  // Only who uses it waits for the client to be loaded.
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
