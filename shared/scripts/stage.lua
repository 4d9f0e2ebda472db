-- Writes one batch of valid records into a staged version; the first record of an id stays, later ones are named.
-- May be repeated with the same arguments: the outcome is the same.
-- KEYS  1 lock  2 staged  3 order of the staged content  4 its records
-- ARGV  1 lock token  2 staged name  3 lifetime in ms  then per record: position, id, JSON
-- Gives the duplicates, a flat list of (index in the batch from 1, position of the first record with that id);
--   or -1 when the lock is not the caller's.
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return -1 end

local members, ids = {}, {}
for i = 4, #ARGV, 3 do
  members[#members + 1] = ARGV[i]
  members[#members + 1] = ARGV[i + 1]
  ids[#ids + 1] = ARGV[i + 1]
end
redis.call('ZADD', KEYS[3], 'NX', unpack(members))

local positions = redis.call('ZMSCORE', KEYS[3], unpack(ids))
local duplicates, fields = {}, {}
for n, id in ipairs(ids) do
  local at = n * 3 + 1
  if tonumber(positions[n]) == tonumber(ARGV[at]) then
    fields[#fields + 1] = id
    fields[#fields + 1] = ARGV[at + 2]
  else
    duplicates[#duplicates + 1] = n
    duplicates[#duplicates + 1] = tonumber(positions[n])
  end
end
if #fields > 0 then redis.call('HSET', KEYS[4], unpack(fields)) end

redis.call('SADD', KEYS[2], ARGV[2])
redis.call('PEXPIRE', KEYS[2], ARGV[3])
redis.call('PEXPIRE', KEYS[3], ARGV[3])
redis.call('PEXPIRE', KEYS[4], ARGV[3])
return duplicates
