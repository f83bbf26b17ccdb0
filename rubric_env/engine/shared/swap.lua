-- The outage becomes another one, if it is still the one that the caller knows; answers with what it is now.
-- KEYS: outage, window; ARGV: known or '', new or '', ttl
local outage, window = unpack(KEYS)
local current = redis.call('GET', outage) or ''
if current ~= ARGV[1] then return current end
if ARGV[2] == '' then
  redis.call('DEL', outage, window)
else
  redis.call('SET', outage, ARGV[2], 'EX', ARGV[3])
end
return ARGV[2]
