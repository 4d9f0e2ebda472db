-- Writes one batch of valid records into a staged content; the first record of an id stays, later ones are named.
-- May be repeated with the same arguments: the outcome is the same.
-- KEYS  1 lock  2 staged  3 positions of the staged content  4 its records
-- ARGV  1 lock token  2 staged name  3 lifetime in ms  4 position, id and length of each record, "1 9 300 2 4 310"
--       5 the records as they are stored, one behind the other
-- Gives the duplicates, a flat list of (index in the batch from 1, position of the first record with that id, 1 when that
--   one is the same, else 0); or -1 when the lock is not the caller's.
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return -1 end

local positions, ids, lengths = {}, {}, {}
for position, id, length in string.gmatch(ARGV[4], '(%d+) (%d+) (%d+)') do
  positions[#positions + 1] = position
  ids[#ids + 1] = id
  lengths[#lengths + 1] = tonumber(length)
end

local known = redis.call('HMGET', KEYS[3], unpack(ids))
local firsts, seen, fields, later = {}, {}, {}, {}
local from = 1
for n, id in ipairs(ids) do
  local stored = string.sub(ARGV[5], from, from + lengths[n] - 1)
  from = from + lengths[n]
  local first = known[n] or seen[id]
  if not first then
    seen[id] = positions[n]
    firsts[#firsts + 1] = id
    firsts[#firsts + 1] = positions[n]
  end
  if not first or first == positions[n] then
    fields[#fields + 1] = id
    fields[#fields + 1] = stored
  else
    later[#later + 1] = {n, first, stored}
  end
end
if #firsts > 0 then redis.call('HSET', KEYS[3], unpack(firsts)) end
if #fields > 0 then redis.call('HSET', KEYS[4], unpack(fields)) end

local duplicates = {}
for _, it in ipairs(later) do
  duplicates[#duplicates + 1] = it[1]
  duplicates[#duplicates + 1] = tonumber(it[2])
  duplicates[#duplicates + 1] = redis.call('HGET', KEYS[4], ids[it[1]]) == it[3] and 1 or 0
end

redis.call('SADD', KEYS[2], ARGV[2])
for i = 2, 4 do redis.call('PEXPIRE', KEYS[i], ARGV[3]) end
return duplicates
