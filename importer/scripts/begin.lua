-- Begins to stage: takes a number for the version to be, unless a name is given that never becomes one.
-- KEYS  1 lock  2 staged  3 next
-- ARGV  1 lock token  2 staged name, "" for a new number  3 lifetime in ms
-- Gives the staged name; or -1 when the lock is not the caller's. Repeated, it gives another
--   number; the one before is forgotten as the import ends.
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return -1 end
local name = ARGV[2]
if name == '' then name = tostring(redis.call('INCR', KEYS[3])) end
redis.call('SADD', KEYS[2], name)
redis.call('PEXPIRE', KEYS[2], ARGV[3])
return name
