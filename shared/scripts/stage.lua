-- Writes one batch of valid records into a staged content; the first record of an id stays, later ones are named.
-- May be repeated with the same arguments: the outcome is the same.
-- KEYS  1 lock  2 staged  3 positions of the staged content  4 its records
-- ARGV  1 lock token  2 staged name  3 lifetime in ms  then per record: position, id, JSON
-- Gives the duplicates, a flat list of (index in the batch from 1, position of the first record with that id, 1 when that
--   one is the same, else 0); or -1 when the lock is not the caller's.
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return -1 end

local members, ids = {}, {}
for i = 4, #ARGV, 3 do
  members[#members + 1] = ARGV[i]
  members[#members + 1] = ARGV[i + 1]
  ids[#ids + 1] = ARGV[i + 1]
end
redis.call('ZADD', KEYS[3], 'NX', unpack(members))

local positions = redis.call('ZMSCORE', KEYS[3], unpack(ids))
local later, fields = {}, {}
for n, id in ipairs(ids) do
  local at = n * 3 + 1
  if tonumber(positions[n]) == tonumber(ARGV[at]) then
    fields[#fields + 1] = id
    fields[#fields + 1] = ARGV[at + 2]
  else
    later[#later + 1] = n
  end
end
if #fields > 0 then redis.call('HSET', KEYS[4], unpack(fields)) end

local duplicates = {}
for _, n in ipairs(later) do
  duplicates[#duplicates + 1] = n
  duplicates[#duplicates + 1] = tonumber(positions[n])
  duplicates[#duplicates + 1] = redis.call('HGET', KEYS[4], ids[n]) == ARGV[n * 3 + 3] and 1 or 0
end

redis.call('SADD', KEYS[2], ARGV[2])
for i = 2, 4 do redis.call('PEXPIRE', KEYS[i], ARGV[3]) end
return duplicates
