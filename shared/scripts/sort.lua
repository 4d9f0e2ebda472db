-- Takes entries of a staged search index, in any order, to be sorted.
-- May be repeated with the same arguments: the outcome is the same.
-- KEYS  1 lock  2 staged  3 entries to be sorted
-- ARGV  1 lock token  2 staged name  3 lifetime in ms  then the entries
-- Gives 1, or -1 when the lock is not the caller's.
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return -1 end

local members = {}
for i = 4, #ARGV do
  members[#members + 1] = 0
  members[#members + 1] = ARGV[i]
end
redis.call('ZADD', KEYS[3], unpack(members))

redis.call('SADD', KEYS[2], ARGV[2])
for i = 2, 3 do redis.call('PEXPIRE', KEYS[i], ARGV[3]) end
return 1
