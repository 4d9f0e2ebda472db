-- Lets go of kept versions that are too many, or whose documents are lost: they are named no more, and what only they
-- hold expires.
-- KEYS  1 lock  2 versions  3 version documents  4 damaged  then what leaves
-- ARGV  1 lock token  2 grace period in ms  3 JSON: the numbers of the versions, what the contents are stored under
-- Gives 1, or -1 when the lock is not the caller's.
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return -1 end
local it = cjson.decode(ARGV[3])
for _, version in ipairs(it.versions) do
  redis.call('ZREM', KEYS[2], version)
  redis.call('HDEL', KEYS[3], version)
end
for _, content in ipairs(it.contents) do redis.call('HDEL', KEYS[4], content) end
for i = 5, #KEYS do redis.call('PEXPIRE', KEYS[i], ARGV[2]) end
return 1
