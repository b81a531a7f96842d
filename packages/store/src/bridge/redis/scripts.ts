import { type CommandParser, defineScript } from "redis";

/**
 * What must happen at once, or not at all, is a script: Redis runs one at a time. All keys of a script belong to one build.
 * Times come from the caller's clock.
 */
export const bridgeScripts = {
  /** Keys: log, keys. Values: channel, packet, most messages, key, topic, from, at, encoding, body. Answers the offset, and 1 for a new message. */
  appendMessage: script<readonly [number, number]>(
    2,
    `local known = redis.call('HGET', KEYS[2], ARGV[4])
    if known then return {tonumber(known), 0} end
    if redis.call('XLEN', KEYS[1]) >= tonumber(ARGV[3]) then return {0, 0} end
    local id = redis.call('XADD', KEYS[1], '0-*', 'key', ARGV[4], 'topic', ARGV[5], 'from', ARGV[6], 'at', ARGV[7],
      'encoding', ARGV[8], 'body', ARGV[9])
    local offset = string.sub(id, 3)
    redis.call('HSET', KEYS[2], ARGV[4], offset)
    redis.call('PUBLISH', ARGV[1], offset .. ' ' .. ARGV[2])
    return {tonumber(offset), 1}`,
  ),
  /** Keys: consumers. Values: consumer, offset. Answers the tries so far. */
  beginTry: script<number>(
    1,
    `local tried, tries = ARGV[1] .. ' tried', ARGV[1] .. ' tries'
    if redis.call('HGET', KEYS[1], tried) == ARGV[2] then return redis.call('HINCRBY', KEYS[1], tries, 1) end
    redis.call('HSET', KEYS[1], tried, ARGV[2], tries, 1)
    return 1`,
  ),
  /** Keys: consumers, dead letters. Values: consumer, offset, dead letter or nothing. */
  advanceConsumer: script<number>(
    2,
    `if ARGV[3] ~= '' then redis.call('HSETNX', KEYS[2], ARGV[1] .. ' ' .. ARGV[2], ARGV[3]) end
    local position = ARGV[1] .. ' position'
    if tonumber(redis.call('HGET', KEYS[1], position) or '0') >= tonumber(ARGV[2]) then return 0 end
    redis.call('HSET', KEYS[1], position, ARGV[2])
    return 1`,
  ),
  /** Keys: claims. Values: owner, now, end of the lease, most paths, then the paths. Answers a word, then claims. */
  claimPaths: script<readonly string[]>(
    1,
    `local held, granted, tokens, fresh = {'held'}, {'granted'}, {}, 0
    for i = 5, #ARGV do
      local known = redis.call('HGET', KEYS[1], ARGV[i])
      local claim = known and cjson.decode(known)
      if not claim then fresh = fresh + 1
      elseif claim.expiresAt > tonumber(ARGV[2]) and claim.owner ~= ARGV[1] then table.insert(held, known) end
      tokens[i] = claim and claim.token or 0
    end
    if #held > 1 then return held end
    if redis.call('HLEN', KEYS[1]) + fresh > tonumber(ARGV[4]) then return {'full'} end
    for i = 5, #ARGV do
      local claim = {path = ARGV[i], owner = ARGV[1], token = tokens[i] + 1, expiresAt = tonumber(ARGV[3])}
      local text = cjson.encode(claim)
      redis.call('HSET', KEYS[1], ARGV[i], text)
      table.insert(granted, text)
    end
    return granted`,
  ),
  /** Keys: claims. Values: path, token, now, new end of the lease. Answers the claim; null when the token holds nothing. */
  moveLease: script<string | null>(
    1,
    `local known = redis.call('HGET', KEYS[1], ARGV[1])
    local claim = known and cjson.decode(known)
    if not claim or claim.token ~= tonumber(ARGV[2]) or claim.expiresAt <= tonumber(ARGV[3]) then return false end
    claim.expiresAt = tonumber(ARGV[4])
    local text = cjson.encode(claim)
    redis.call('HSET', KEYS[1], ARGV[1], text)
    return text`,
  ),
} as const;

function script<Reply>(keyCount: number, lua: string) {
  return defineScript({
    SCRIPT: lua,
    NUMBER_OF_KEYS: keyCount,
    parseCommand(parser: CommandParser, keys: readonly string[], values: readonly (string | number)[]) {
      parser.pushKeys([...keys]);
      parser.push(...values.map(String));
    },
    transformReply: (reply: unknown) => reply as Reply,
  });
}
