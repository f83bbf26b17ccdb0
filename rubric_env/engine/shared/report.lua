-- What a process has in flight, and which of its calls ended; answers with how the endpoint stands.
-- KEYS: outage, window, calls, rollouts
-- ARGV: process, calls and rollouts in flight, the most of each that count, seconds that this is good for,
--       largest window, ttl, 1 to be told the window, then time and text of each call
-- Answers: now, outage or '', calls and rollouts in flight everywhere, window.
local outage, window, calls, rollouts = unpack(KEYS)
local process, good, largest, ttl = ARGV[1], tonumber(ARGV[6]), tonumber(ARGV[7]), ARGV[8]

local clock = redis.call('TIME')
local now = clock[1] + clock[2] / 1000000

local function present(key, count, most)
  for n = 1, most do
    local member = process .. '/' .. n
    if n <= count then redis.call('ZADD', key, now + good, member) else redis.call('ZREM', key, member) end
  end
  redis.call('ZREMRANGEBYSCORE', key, '-inf', now)
  redis.call('EXPIRE', key, ttl)
  return redis.call('ZCARD', key)
end
local calls_there = present(calls, tonumber(ARGV[2]), tonumber(ARGV[4]))
local rollouts_there = present(rollouts, tonumber(ARGV[3]), tonumber(ARGV[5]))

local current = redis.call('GET', outage) or ''
if current == '' and #ARGV > 9 then
  redis.call('ZADD', window, unpack(ARGV, 10))
  redis.call('ZREMRANGEBYRANK', window, 0, -largest - 1)
  redis.call('EXPIRE', window, ttl)
end
local last = ARGV[9] == '1' and redis.call('ZRANGE', window, 0, -1, 'WITHSCORES') or {}
return {string.format('%.6f', now), current, calls_there, rollouts_there, last}
