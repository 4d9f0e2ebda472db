-- Replaces a value in the hash of API keys, and sets further fields, unless the value has changed: a revoked key must not
-- come back. May be repeated.
-- KEYS  1 hash of API keys
-- ARGV  1 field  2 its expected value  3 its new value  4 and 5 a second field and its value  then further fields and values
-- Returns 1; 0 if the value has changed: then nothing is done.
local now = redis.call('HGET', KEYS[1], ARGV[1])
if now == ARGV[3] and redis.call('HGET', KEYS[1], ARGV[4]) == ARGV[5] then return 1 end
if now ~= ARGV[2] then return 0 end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[3], unpack(ARGV, 4))
return 1
