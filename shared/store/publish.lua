-- Publishes a version in one step: moves the pointer, keeps its content, lets old contents expire, writes the history, and
-- announces it. The content was staged or, for a rollback, is kept. If any check fails, nothing is changed.
-- KEYS  1 lock  2 live  3 versions  4 version documents  5 staged  6 imports  7 rejects  8 pause  9 rolled back
--       10 change sets  11 checked  12 validators  13 next  14 damaged  15 candidate
--       then the keys of the content; the change sets; the keys to expire
-- ARGV  1 JSON: token, expectedLive (document of the live version that the caller has seen, "" for none), number,
--         document, sizes (of the content's keys: command, size), changes (of each change set: number of ids, -1 for no
--         set, and its facts), leaving {versions, contents, changeSets}, graceMs, channel, report, historyCap,
--         pause ("" ends it), rolledBack and reinstated (checksums, "" for none), checkedAt and validators ("" for none),
--         isCandidate (whether the version was the candidate)
--       then the rejects of the import, a header first; none for a rollback
-- Returns 1 published, 2 already published, -1 the caller has lost the lock, -2 another version went live,
--   -3 the content is incomplete.
local it = cjson.decode(ARGV[1])
if redis.call('ZSCORE', KEYS[3], it.number) then
  -- WAIT and WAITAOF wait for what their connection has written, and this may be another connection than the first one.
  redis.call('PUBLISH', it.channel, it.number)
  return 2
end
if redis.call('GET', KEYS[1]) ~= it.token then return -1 end
if (redis.call('GET', KEYS[2]) or '') ~= it.expectedLive then return -2 end
for i, size in ipairs(it.sizes) do
  if redis.call(size[1], KEYS[15 + i]) ~= size[2] then return -3 end
end

local changeSets = 15 + #it.sizes
for i, set in ipairs(it.changes) do
  if set[1] >= 0 and redis.call('HLEN', KEYS[changeSets + i]) ~= set[1] then return -3 end
end
local leaving = changeSets + #it.changes

local function setOrDelete(key, text)
  if text == '' then redis.call('DEL', key) else redis.call('SET', key, text) end
end

-- Commands that free memory come first: at maxmemory, Redis then accepts the rest.
for i = 16, leaving do redis.call('PERSIST', KEYS[i]) end
for i, set in ipairs(it.changes) do
  if set[1] >= 0 then redis.call('HSET', KEYS[changeSets + i], '#', set[2]) end
end
redis.call('DEL', KEYS[5])
if it.isCandidate then redis.call('DEL', KEYS[15]) end
-- Redis may have lost its last writes: the number of a live version must not be used again.
if (tonumber(redis.call('GET', KEYS[13]) or 0) or 0) < it.number then redis.call('SET', KEYS[13], it.number) end
redis.call('ZADD', KEYS[3], it.number, it.number)
redis.call('HSET', KEYS[4], it.number, it.document)
redis.call('ZADD', KEYS[10], it.number, it.number)
redis.call('SET', KEYS[2], it.document)

for _, version in ipairs(it.leaving.versions) do
  redis.call('ZREM', KEYS[3], version)
  redis.call('HDEL', KEYS[4], version)
end
for _, content in ipairs(it.leaving.contents) do redis.call('HDEL', KEYS[14], content) end
for _, version in ipairs(it.leaving.changeSets) do redis.call('ZREM', KEYS[10], version) end
for i = leaving + 1, #KEYS do redis.call('PEXPIRE', KEYS[i], it.graceMs) end

setOrDelete(KEYS[8], it.pause)
if it.rolledBack ~= '' then redis.call('SADD', KEYS[9], it.rolledBack) end
if it.reinstated ~= '' then redis.call('SREM', KEYS[9], it.reinstated) end
setOrDelete(KEYS[11], it.checkedAt)
setOrDelete(KEYS[12], it.validators)

redis.call('XADD', KEYS[6], 'MAXLEN', it.historyCap, '*', 'report', it.report)
if #ARGV > 1 then
  redis.call('DEL', KEYS[7])
  redis.call('RPUSH', KEYS[7], unpack(ARGV, 2))
end
redis.call('PUBLISH', it.channel, it.number)
return 1
