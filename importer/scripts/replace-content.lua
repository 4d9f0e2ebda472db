-- Puts a content that was made anew in the place of the one that was damaged, for all versions that hold it.
-- Nothing is done unless everything can be.
-- KEYS  1 lock  2 live  3 version documents  4 staged  5 damaged
--       then the keys of the content; what leaves
-- ARGV  1 JSON: token, name (what the content is staged under), was (what the damaged one is stored under), documents (of
--         each version that holds it: number, text), live (the document of the live version, "" where another content is
--         live), expectedLive, sizes (of the content's keys: command, size), graceMs, channel
-- Gives 1; 2 when it was done before; -1 the lock is not the caller's, -2 another version went live,
--   -3 the content is not whole.
local it = cjson.decode(ARGV[1])
local first = it.documents[1]
if redis.call('HGET', KEYS[3], first[1]) == first[2] then return 2 end
if redis.call('GET', KEYS[1]) ~= it.token then return -1 end
if it.live ~= '' and redis.call('GET', KEYS[2]) ~= it.expectedLive then return -2 end
for i, size in ipairs(it.sizes) do
  if redis.call(size[1], KEYS[5 + i]) ~= size[2] then return -3 end
end

local leaving = 5 + #it.sizes
for i = 6, leaving do redis.call('PERSIST', KEYS[i]) end
redis.call('SREM', KEYS[4], it.name)
for _, document in ipairs(it.documents) do redis.call('HSET', KEYS[3], document[1], document[2]) end
if it.live ~= '' then redis.call('SET', KEYS[2], it.live) end
redis.call('HDEL', KEYS[5], it.was)
for i = leaving + 1, #KEYS do redis.call('PEXPIRE', KEYS[i], it.graceMs) end
redis.call('PUBLISH', it.channel, first[1])
return 1
