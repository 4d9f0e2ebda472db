-- Puts change sets that were made anew in the place of damaged ones.
-- KEYS  1 lock  2 staged  then of each part: the set as it was staged, and its place
-- ARGV  1 lock token  2 staged name  then of each part: how many ids, -1 for no set, and what the set says of itself
-- Gives 1; 2 when it was done before; -1 when the lock is not the caller's, -3 when a part of what was staged is lost.
local function isDone()
  if redis.call('SISMEMBER', KEYS[2], ARGV[2]) == 1 then return false end
  for i = 3, #KEYS, 2 do
    local size = tonumber(ARGV[i])
    if redis.call('HLEN', KEYS[i + 1]) ~= size + 1 then return false end
    if size >= 0 and redis.call('HGET', KEYS[i + 1], '#') ~= ARGV[i + 1] then return false end
  end
  return true
end
if isDone() then return 2 end
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return -1 end
for i = 3, #KEYS, 2 do
  local size = tonumber(ARGV[i])
  if size >= 0 and redis.call('HLEN', KEYS[i]) ~= size then return -3 end
end
for i = 3, #KEYS, 2 do
  redis.call('UNLINK', KEYS[i + 1])
  if redis.call('EXISTS', KEYS[i]) == 1 then
    redis.call('RENAME', KEYS[i], KEYS[i + 1])
    redis.call('PERSIST', KEYS[i + 1])
  end
  if tonumber(ARGV[i]) >= 0 then redis.call('HSET', KEYS[i + 1], '#', ARGV[i + 1]) end
end
redis.call('SREM', KEYS[2], ARGV[2])
return 1
