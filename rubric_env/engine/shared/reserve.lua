-- A permit for one call, if the quota has one that starts soon. Times are Redis's own, in seconds.
-- KEYS: quota, tally, calls, processes, adjusting
-- ARGV: permit, process, tokens, ahead, burst, seconds that the call may last, tick, ttl, 1 to be told the pace
-- Answers: now; then, unless the quota's pace is not known: start, 'later' or 'full', processes, the pace's JSON or '';
--          then the tally, for who has to adjust.
local quota, tally, calls, processes, adjusting = unpack(KEYS)
local permit, process = ARGV[1], ARGV[2]
local tokens, ahead, burst, lasts = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
local tick, ttl = tonumber(ARGV[7]), ARGV[8]

local clock = redis.call('TIME')
local now = clock[1] + clock[2] / 1000000
local function text(number) return string.format('%.6f', number) end

local known = redis.call('HMGET', quota, 'at', 'paused', 'pace', 'tokens', 'window', 'calls_due', 'tokens_due')
if not known[1] then return {text(now)} end
local at, paused, pace = tonumber(known[1]), tonumber(known[2]), tonumber(known[3])
local token_pace, window = tonumber(known[4]), tonumber(known[5])
local calls_due, tokens_due = tonumber(known[6] or 0), tonumber(known[7] or 0)

-- As engine.pace.gcra.
local earliest = math.max(now, paused)
local function gcra(due, cost, rate)
  if not rate then return earliest, due end
  local seconds = cost / rate
  return math.max(earliest, due + seconds - math.max(burst, seconds)), math.max(earliest, due) + seconds
end
local calls_start, calls_after = gcra(calls_due, 1, pace)
local tokens_start, tokens_after = gcra(tokens_due, tokens, token_pace)
local start = math.max(calls_start, tokens_start)

redis.call('ZREMRANGEBYSCORE', calls, '-inf', now)
redis.call('ZREMRANGEBYSCORE', processes, '-inf', now)
redis.call('ZADD', processes, now + 60, process)
redis.call('EXPIRE', processes, ttl)

local answer = {text(now), 'later', redis.call('ZCARD', processes), ''}
if window and redis.call('ZCARD', calls) >= math.floor(window) then
  answer[2] = 'full'
elseif start - now <= ahead then
  answer[2] = text(start)
  redis.call('HSET', quota, 'calls_due', text(calls_after), 'tokens_due', text(tokens_after))
  redis.call('ZADD', calls, text(start + lasts), permit)
  redis.call('EXPIRE', calls, ttl + math.ceil(lasts))
  redis.call('HINCRBY', tally, 'sent', 1)
  redis.call('EXPIRE', tally, ttl)
end
if ARGV[9] == '1' then answer[4] = redis.call('HGET', quota, 'state') end
if now - at >= tick and redis.call('SET', adjusting, permit, 'NX', 'PX', 2000) then
  answer[4] = redis.call('HGET', quota, 'state')
  answer[5] = redis.call('HGETALL', tally)
  redis.call('DEL', tally)
end
return answer
