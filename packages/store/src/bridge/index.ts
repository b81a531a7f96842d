export type { Clock } from "./clock.ts";
export { type ConsumeOptions, consume } from "./consume.ts";
export { type BridgeSettings, openBridge } from "./open.ts";
export { type RedisAddress, redisRules } from "./redis/address.ts";
