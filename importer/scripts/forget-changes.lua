-- Lets go of change sets: changes cannot be asked for any more from before them.
-- KEYS  1 lock  2 change sets  then those that leave
-- ARGV  1 lock token  then the numbers of the versions from which changes are not told any more
-- Gives 1, or -1 when the lock is not the caller's.
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return -1 end
redis.call('ZREM', KEYS[2], unpack(ARGV, 2))
for i = 3, #KEYS do redis.call('UNLINK', KEYS[i]) end
return 1
