-- Compares some records of one content with another one, and writes what differs into a change set.
-- A change set maps an id to the digests of its record before and after, "-" where there is none.
-- KEYS  1 lock  2 staged  3 order of the content that is walked  4 its records  5 records of the other  6 change set
-- ARGV  1 lock token  2 staged name  3 lifetime in ms  4 number of the part of the order
--       5 "after": the walked content is the newer one, and what it has is compared;
--         "before": it is the older one, and what the newer one lacks is told
--       6 how many bytes of check stand behind each record of the walked content  7 the same of the other
--       8 how many ids of the part are passed over  9 how many are compared
-- Gives {only in the walked content, different in both, sum of what was written, how many ids the part has}; or -1 when the lock is not the caller's.
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return -1 end

local packed = redis.call('HGET', KEYS[3], ARGV[4])
if not packed then return {0, 0, 0, 0} end
local ids, total = {}, math.floor(#packed / 8)
local from, to = tonumber(ARGV[8]), math.min(ARGV[8] + ARGV[9], total)
if from >= to then return {0, 0, 0, total} end
for at = from * 8 + 1, to * 8, 8 do ids[#ids + 1] = string.format('%.0f', (struct.unpack('>I8', packed, at))) end
local walked = redis.call('HMGET', KEYS[4], unpack(ids))
local others = redis.call('HMGET', KEYS[5], unpack(ids))
local walkedCheck, otherCheck = tonumber(ARGV[6]), tonumber(ARGV[7])

local function uncovered(stored, check) return string.sub(stored, 1, -1 - check) end
local function isSame(n)
  if walkedCheck == otherCheck then return walked[n] == others[n] end
  return walked[n] and uncovered(walked[n], walkedCheck) == uncovered(others[n], otherCheck)
end

local alone, different, sum, fields = 0, 0, 0, {}
local function digest(stored, check) return stored and redis.sha1hex(uncovered(stored, check)) or '-' end
local function note(id, before, after)
  local text = before .. ' ' .. after
  fields[#fields + 1] = id
  fields[#fields + 1] = text
  sum = (sum + tonumber(string.sub(redis.sha1hex(id .. ' ' .. text), 1, 8), 16)) % 4294967296
end
for n, id in ipairs(ids) do
  if not others[n] then
    alone = alone + 1
    local its = digest(walked[n], walkedCheck)
    if ARGV[5] == 'after' then note(id, '-', its) else note(id, its, '-') end
  elseif ARGV[5] == 'after' and not isSame(n) then
    different = different + 1
    note(id, digest(others[n], otherCheck), digest(walked[n], walkedCheck))
  end
end
if #fields > 0 then
  redis.call('HSET', KEYS[6], unpack(fields))
  redis.call('SADD', KEYS[2], ARGV[2])
  redis.call('PEXPIRE', KEYS[2], ARGV[3])
  redis.call('PEXPIRE', KEYS[6], ARGV[3])
end
return {alone, different, sum, total}
