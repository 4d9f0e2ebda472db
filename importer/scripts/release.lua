-- Gives a lock back.
-- KEYS  1 lock
-- ARGV  1 lock token
-- Gives 1, or -1 when the lock is not the caller's.
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return -1 end
redis.call('DEL', KEYS[1])
return 1
