-- What goes for a quota from now on, unless somebody else has said so since `before`, the time of the last adjustment.
-- KEYS: quota, adjusting; ARGV: before or '', ttl, fields and values
local quota, adjusting = unpack(KEYS)
if (redis.call('HGET', quota, 'at') or '') == ARGV[1] then
  redis.call('HSET', quota, unpack(ARGV, 3))
  redis.call('EXPIRE', quota, ARGV[2])
end
redis.call('DEL', adjusting)
