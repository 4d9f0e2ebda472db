-- Begins to stage under a name, so that what follows can be told from what is dead or was published.
-- KEYS  1 lock  2 staged
-- ARGV  1 lock token  2 staged name  3 lifetime in ms
-- Gives 1, or -1 when the lock is not the caller's.
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return -1 end
redis.call('SADD', KEYS[2], ARGV[2])
redis.call('PEXPIRE', KEYS[2], ARGV[3])
return 1
