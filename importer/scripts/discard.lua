-- Drops what was staged and leaves no trace of it.
-- KEYS  1 lock  2 staged  3 versions  then the staged keys
-- ARGV  1 lock token  2 staged name
-- Gives 1; 2 when it has been published after all, by a reply that was lost: then nothing is done;
--   -1 when the lock is not the caller's.
if redis.call('ZSCORE', KEYS[3], ARGV[2]) then return 2 end
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return -1 end
for i = 4, #KEYS do redis.call('UNLINK', KEYS[i]) end
redis.call('SREM', KEYS[2], ARGV[2])
return 1
