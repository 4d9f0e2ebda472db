-- Compares some records of one content with the records of another content. Reads only.
-- KEYS  1 order of the first content  2 its records  3 records of the other content
-- ARGV  1 number of the range of the order, from 0  2 how many ids of the range to skip  3 how many to compare
--       4 "all" returns every id whose records differ, "alone" only ids that the other content lacks
--       5 how many records the other content has
-- Returns a flat list of id, SHA-1 of the first content's record, SHA-1 of the other's or "-" if there is none;
--   -1 if part of a content is missing.
local packed = redis.call('HGET', KEYS[1], ARGV[1])
if not packed or redis.call('HLEN', KEYS[3]) ~= tonumber(ARGV[5]) then return -1 end

local ids = {}
local from = ARGV[2] * 8 + 1
local to = math.min(ARGV[2] + ARGV[3], math.floor(#packed / 8)) * 8
for at = from, to, 8 do ids[#ids + 1] = string.format('%.0f', (struct.unpack('>I8', packed, at))) end
if #ids == 0 then return -1 end
local walked = redis.call('HMGET', KEYS[2], unpack(ids))
local others = redis.call('HMGET', KEYS[3], unpack(ids))

local found = {}
for n, id in ipairs(ids) do
  if not walked[n] then return -1 end
  if not others[n] or (ARGV[4] == 'all' and walked[n] ~= others[n]) then
    found[#found + 1] = id
    found[#found + 1] = redis.sha1hex(walked[n])
    found[#found + 1] = others[n] and redis.sha1hex(others[n]) or '-'
  end
end
return found
