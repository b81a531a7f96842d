import { settingsError } from "@slipway/contract";

export interface RedisAddress {
  /** `redis://` or `rediss://`. */
  readonly url: string;
  /** Before the name of every channel. */
  readonly prefix?: string | undefined;
}

/** What settings may be, and the words for wrong ones. They do not repeat the address, which may hold a password. */
export const redisRules = {
  url: { isRight: isRedisUrl, expected: "expected an address such as redis://host:6379 or rediss://host:6379" },
  prefix: {
    // No braces: Redis would take them for a hash tag.
    isRight: (prefix: string) => /^[\w.:/-]{1,64}$/.test(prefix),
    expected: "expected up to 64 letters, digits or any of _.:/-",
  },
} as const;

export function checkAddress(url: string, prefix: string): void {
  const mistakes = [
    ...(redisRules.url.isRight(url) ? [] : [`REDIS_URL: ${redisRules.url.expected}.`]),
    ...(redisRules.prefix.isRight(prefix) ? [] : [`REDIS_SANDBOX_PREFIX: ${redisRules.prefix.expected}.`]),
  ];
  if (mistakes.length > 0) throw settingsError(mistakes);
}

/** The path is the database's number. `%` in a name or a password is written as `%25`. */
function isRedisUrl(text: string): boolean {
  const url = URL.parse(text);
  if (url === null || (url.protocol !== "redis:" && url.protocol !== "rediss:")) return false;
  const isEncoded = !/%(?![0-9a-f]{2})/i.test(url.username + url.password);
  return url.hostname !== "" && /^\/?\d{0,9}$/.test(url.pathname) && isEncoded;
}
