-- Begins a version: takes a number for it, unless the caller gives a name that is never a version number. The number is the
-- current time, UTC, as YYYYMMDDhhmmss, or the last number + 1 if the time is not greater. Redis may have lost the last number;
-- the clock has not.
-- KEYS  1 lock  2 staged  3 next  4 versions  5 change sets
-- ARGV  1 lock token  2 staged name, "" for a new number  3 lifetime in ms
-- Returns the staged name, or -1 if the caller has lost the lock. A repetition returns another number; the end of the import
--   deletes the first one.
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return -1 end

-- Days since 1970 as year, month and day. Years begin in March here, so their leap day is the last day.
local function timeAsNumber(seconds)
  local days = math.floor(seconds / 86400) + 719468
  local era = math.floor(days / 146097)
  local ofEra = days - era * 146097
  local yearOfEra =
    math.floor((ofEra - math.floor(ofEra / 1460) + math.floor(ofEra / 36524) - math.floor(ofEra / 146096)) / 365)
  local ofYear = ofEra - (365 * yearOfEra + math.floor(yearOfEra / 4) - math.floor(yearOfEra / 100))
  local fromMarch = math.floor((5 * ofYear + 2) / 153)
  local day = ofYear - math.floor((153 * fromMarch + 2) / 5) + 1
  local month = fromMarch < 10 and fromMarch + 3 or fromMarch - 9
  local year = yearOfEra + era * 400 + (month <= 2 and 1 or 0)
  local ofDay = seconds % 86400
  local clock = math.floor(ofDay / 3600) * 10000 + math.floor(ofDay / 60) % 60 * 100 + ofDay % 60
  return ((year * 100 + month) * 100 + day) * 1000000 + clock
end

local name = ARGV[2]
if name == '' then
  local last = tonumber(redis.call('GET', KEYS[3]) or 0) or 0
  for i = 4, 5 do
    last = math.max(last, tonumber(redis.call('ZREVRANGE', KEYS[i], 0, 0)[1] or 0))
  end
  local number = math.max(timeAsNumber(tonumber(redis.call('TIME')[1])), last + 1)
  name = string.format('%.0f', number)
  redis.call('SET', KEYS[3], name)
end
redis.call('SADD', KEYS[2], name)
redis.call('PEXPIRE', KEYS[2], ARGV[3])
return name
