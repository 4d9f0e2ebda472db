-- Mends what says which versions there are: drops keys that are damaged, and writes pointer and kept versions anew.
-- May be repeated with the same arguments: the outcome is the same.
-- KEYS  1 lock  2 next  3 live  4 versions  5 version documents  then the keys that are dropped
-- ARGV  1 lock token  2 document of the live version, "" for none  then per kept version: number, document
-- Gives 1, or -1 when the lock is not the caller's.
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return -1 end

for i = 3, #KEYS do redis.call('UNLINK', KEYS[i]) end
if ARGV[2] ~= '' then redis.call('SET', KEYS[3], ARGV[2]) end
local latest = 0
for i = 3, #ARGV, 2 do
  redis.call('ZADD', KEYS[4], ARGV[i], ARGV[i])
  redis.call('HSET', KEYS[5], ARGV[i], ARGV[i + 1])
  latest = math.max(latest, tonumber(ARGV[i]))
end
-- A number that was given out must not be given out again.
if tonumber(redis.call('GET', KEYS[2]) or 0) < latest then redis.call('SET', KEYS[2], latest) end
return 1
