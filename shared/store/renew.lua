-- Renews the lock of an import and its staged keys. A published version is no longer staged.
-- KEYS  1 lock  2 staged  then the staged keys
-- ARGV  1 lock token  2 staged name  3 lifetime of the lock in ms  4 lifetime of the staged keys in ms
-- Returns 1, or -1 if the caller has lost the lock.
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return -1 end
redis.call('PEXPIRE', KEYS[1], ARGV[3])
if redis.call('SISMEMBER', KEYS[2], ARGV[2]) == 1 then
  for i = 2, #KEYS do redis.call('PEXPIRE', KEYS[i], ARGV[4]) end
end
return 1
