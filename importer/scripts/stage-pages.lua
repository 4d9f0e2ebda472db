-- Writes sorted entries of a staged search index, by pages, and the first entry of each, by which pages are found.
-- May be repeated with the same arguments: the outcome is the same.
-- KEYS  1 lock  2 staged  3 entries of the staged content  4 its fences
-- ARGV  1 lock token  2 staged name  3 lifetime in ms  then per page: number, bytes, first entry
-- Gives 1, or -1 when the lock is not the caller's.
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return -1 end

local pages, fences = {}, {}
for i = 4, #ARGV, 3 do
  pages[#pages + 1] = ARGV[i]
  pages[#pages + 1] = ARGV[i + 1]
  fences[#fences + 1] = 0
  fences[#fences + 1] = ARGV[i + 2]
end
redis.call('HSET', KEYS[3], unpack(pages))
redis.call('ZADD', KEYS[4], unpack(fences))

redis.call('SADD', KEYS[2], ARGV[2])
for i = 2, 4 do redis.call('PEXPIRE', KEYS[i], ARGV[3]) end
return 1
