-- Keeps an import alive: its lock, and what it has staged so far.
-- KEYS  1 lock  then the staged keys
-- ARGV  1 lock token  2 lifetime of the lock in ms  3 lifetime of the staged keys in ms
-- Gives 1, or -1 when the lock is not the caller's.
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return -1 end
redis.call('PEXPIRE', KEYS[1], ARGV[2])
for i = 2, #KEYS do redis.call('PEXPIRE', KEYS[i], ARGV[3]) end
return 1
