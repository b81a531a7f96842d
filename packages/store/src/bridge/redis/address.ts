import { settingsError } from "@slipway/contract";

export interface RedisAddress {
  /** `redis://` or `rediss://`. */
  readonly url: string;
  /** Before the name of every channel. */
  readonly prefix?: string | undefined;
}

/** What the settings of an address may be, and how a wrong one is told. The address may hold a password and is not repeated. */
export const redisRules = {
  url: { isRight: isRedisUrl, expected: "expected an address such as redis://host:6379 or rediss://host:6379" },
  prefix: {
    // Without braces: they would be taken for the hash tag.
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

/** The path is the number of a database; in a name and a password, `%` is written as `%25`. */
function isRedisUrl(text: string): boolean {
  const url = URL.parse(text);
  if (url === null || (url.protocol !== "redis:" && url.protocol !== "rediss:")) return false;
  const isEncoded = !/%(?![0-9a-f]{2})/i.test(url.username + url.password);
  return url.hostname !== "" && /^\/?\d{0,9}$/.test(url.pathname) && isEncoded;
}
