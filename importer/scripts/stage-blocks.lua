-- Writes what staged records are listed by: their order and their blocks.
-- May be repeated with the same arguments: the outcome is the same.
-- KEYS  1 lock  2 staged  3 order of the staged content  4 its blocks
-- ARGV  1 lock token  2 staged name  3 lifetime in ms  then per block: number, its part of the order, its bytes or ''
-- Gives 1, or -1 when the lock is not the caller's.
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return -1 end

for i = 4, #ARGV, 3 do
  redis.call('HSET', KEYS[3], ARGV[i], ARGV[i + 1])
  if ARGV[i + 2] ~= '' then redis.call('HSET', KEYS[4], ARGV[i], ARGV[i + 2]) end
end

redis.call('SADD', KEYS[2], ARGV[2])
for i = 2, 4 do redis.call('PEXPIRE', KEYS[i], ARGV[3]) end
return 1
