-- Makes a staged version live, in one step: moves the pointer, keeps the content, lets go of what leaves the kept
-- versions, writes the history and announces. Nothing is done unless everything can be.
-- KEYS  1 lock  2 live  3 versions  4 version documents  5 staged  6 imports  7 rejects  8 order  9 records
--       then the keys of the contents that leave
-- ARGV  1 lock token  2 live document the import compared itself with ("" : none)  3 number  4 version document
--       5 count of records  6 grace in ms for what leaves  7 channel  8 report of the import  9 history cap
--       10 how many versions leave, then their numbers; then the rejects, a header first
-- Gives 1 published, 2 already published, -1 the lock is not the caller's, -2 another version went live,
--   -3 the staged content is not whole.
if redis.call('ZSCORE', KEYS[3], ARGV[3]) then return 2 end
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return -1 end
if (redis.call('GET', KEYS[2]) or '') ~= ARGV[2] then return -2 end
local count = tonumber(ARGV[5])
if redis.call('ZCARD', KEYS[8]) ~= count or redis.call('HLEN', KEYS[9]) ~= count then return -3 end

redis.call('PERSIST', KEYS[8])
redis.call('PERSIST', KEYS[9])
redis.call('SREM', KEYS[5], ARGV[3])
redis.call('ZADD', KEYS[3], ARGV[3], ARGV[3])
redis.call('HSET', KEYS[4], ARGV[3], ARGV[4])
redis.call('SET', KEYS[2], ARGV[4])

local leaving = tonumber(ARGV[10])
for i = 11, 10 + leaving do
  redis.call('ZREM', KEYS[3], ARGV[i])
  redis.call('HDEL', KEYS[4], ARGV[i])
end
for i = 10, #KEYS do redis.call('PEXPIRE', KEYS[i], ARGV[6]) end

redis.call('XADD', KEYS[6], 'MAXLEN', ARGV[9], '*', 'report', ARGV[8])
redis.call('DEL', KEYS[7])
redis.call('RPUSH', KEYS[7], unpack(ARGV, 11 + leaving))
redis.call('PUBLISH', ARGV[7], ARGV[3])
return 1
