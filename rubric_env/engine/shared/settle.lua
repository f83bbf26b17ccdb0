-- A call is over, or its permit comes back. Once only: its place among the calls in flight is taken with it.
-- KEYS: quota, tally, calls
-- ARGV: permit, start, tokens given back, wait named, wait until there is more, then what counts: sent (-1 of a
--       refund), answered, refused, crowded; the limits that the endpoint names, or ''; ttl
local quota, tally, calls = unpack(KEYS)
local permit, start = ARGV[1], tonumber(ARGV[2])
local tokens_back, named, reset, sent = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
if redis.call('ZREM', calls, permit) == 0 then return end

local clock = redis.call('TIME')
local now = clock[1] + clock[2] / 1000000
local known = redis.call('HMGET', quota, 'at', 'pace', 'tokens', 'decreased', 'cut', 'calls_due', 'tokens_due')
if not known[1] then return end
local pace, token_pace, decreased, cut = tonumber(known[2]), tonumber(known[3]), tonumber(known[4]), tonumber(known[5])

local function back(field, due, cost, rate)
  if rate and cost ~= 0 then redis.call('HSET', quota, field, string.format('%.6f', (due or 0) - cost / rate)) end
end
back('calls_due', known[6], -sent, pace)
back('tokens_due', known[7], tokens_back, token_pace)

local function latest(field, seconds)
  if seconds > 0 and now + seconds > tonumber(redis.call('HGET', tally, field) or 0) then
    redis.call('HSET', tally, field, string.format('%.6f', now + seconds))
  end
end
latest('named_until', named)
latest('reset_until', reset)

local function count(field, number)
  if number ~= 0 then redis.call('HINCRBY', tally, field, number) end
end
count('sent', sent)
count('answered', tonumber(ARGV[7]))
count('refused', tonumber(ARGV[8]))
if start > decreased then count('limited', tonumber(ARGV[8])) end
if ARGV[9] == '1' and start > cut then
  local room = redis.call('ZCARD', calls)
  redis.call('HSET', tally, 'room', math.min(room, tonumber(redis.call('HGET', tally, 'room') or room)))
end
if ARGV[10] ~= '' then redis.call('HSET', tally, 'requests_per_minute', ARGV[10]) end
if ARGV[11] ~= '' then redis.call('HSET', tally, 'tokens_per_minute', ARGV[11]) end
redis.call('EXPIRE', tally, ARGV[12])
