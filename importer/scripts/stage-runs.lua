-- Keeps pieces of sorted runs of the entries of a staged search index, until the runs are merged.
-- May be repeated with the same arguments: the outcome is the same.
-- KEYS  1 lock  2 staged  3 pieces of the sorted runs
-- ARGV  1 lock token  2 staged name  3 lifetime in ms  then per piece: name, bytes
-- Gives 1, or -1 when the lock is not the caller's.
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return -1 end

redis.call('HSET', KEYS[3], unpack(ARGV, 4))

redis.call('SADD', KEYS[2], ARGV[2])
for i = 2, 3 do redis.call('PEXPIRE', KEYS[i], ARGV[3]) end
return 1
