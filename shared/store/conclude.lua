-- Ends an import that published nothing: deletes its staged keys, or keeps them as the candidate, and writes the history and
-- its rejects. Without a report, it only deletes the staged keys of a name.
-- KEYS  1 lock  2 staged  3 imports  4 rejects  5 checked  6 validators  7 versions  8 candidate
--       then the staged keys; the keys of the candidate that is replaced
-- ARGV  1 JSON: token ("" for an import that never held the lock), name (of the staged keys, "" for none), report (""
--         for none), historyCap, checkedAt ("" leaves it unchanged), validators ("" deletes them, "keep" leaves them),
--         candidate (its JSON text, "" leaves it unchanged, "delete" deletes it), staying (how many staged keys the
--         candidate keeps), candidateMs (for how long)
--       then the rejects of the import, a header first; without them the earlier ones stay
-- Returns 1; 2 if the version had been published and only the reply was lost: then nothing is done;
--   -1 if the caller has lost the lock: then nothing is done, except that an import that never held it enters the history.
--   May be repeated.
local it = cjson.decode(ARGV[1])
if it.name ~= '' and redis.call('ZSCORE', KEYS[7], it.name) then return 2 end
local isHolder = redis.call('GET', KEYS[1]) == it.token
if not isHolder and it.token ~= '' then return -1 end

-- Commands that free memory come first: at maxmemory, Redis then accepts the rest.
if isHolder then
  for i = 9 + it.staying, #KEYS do redis.call('UNLINK', KEYS[i]) end
  for i = 9, 8 + it.staying do redis.call('PEXPIRE', KEYS[i], it.candidateMs) end
  if it.candidate == 'delete' then
    redis.call('DEL', KEYS[8])
  elseif it.candidate ~= '' then
    redis.call('SET', KEYS[8], it.candidate, 'PX', it.candidateMs)
  end
  if it.name ~= '' then redis.call('SREM', KEYS[2], it.name) end
end
if it.report == '' then return 1 end
if isHolder and it.name ~= '' then redis.call('DEL', KEYS[2]) end
local last = redis.call('XREVRANGE', KEYS[3], '+', '-', 'COUNT', 1)[1]
if last and last[2][2] == it.report then return 1 end
redis.call('XADD', KEYS[3], 'MAXLEN', it.historyCap, '*', 'report', it.report)
if not isHolder then return 1 end

if it.checkedAt ~= '' then redis.call('SET', KEYS[5], it.checkedAt) end
if it.validators == '' then
  redis.call('DEL', KEYS[6])
elseif it.validators ~= 'keep' then
  redis.call('SET', KEYS[6], it.validators)
end
if #ARGV > 1 then
  redis.call('DEL', KEYS[4])
  redis.call('RPUSH', KEYS[4], unpack(ARGV, 2))
end
return 1
