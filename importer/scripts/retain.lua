-- Lets go of kept versions that are too many: they are named no more, and what only they hold expires.
-- KEYS  1 lock  2 versions  3 version documents  then what leaves
-- ARGV  1 lock token  2 grace period in ms  then the numbers of the versions
-- Gives 1, or -1 when the lock is not the caller's.
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return -1 end
redis.call('ZREM', KEYS[2], unpack(ARGV, 3))
redis.call('HDEL', KEYS[3], unpack(ARGV, 3))
for i = 4, #KEYS do redis.call('PEXPIRE', KEYS[i], ARGV[2]) end
return 1
