-- Writes the report of a publication anew in the history, with what was found after it.
-- KEYS  1 lock  2 imports
-- ARGV  1 lock token  2 the report as it was written  3 the report in its place  4 how many of the last reports are looked at
-- Gives 1; 2 when the report is not among them, as where this is repeated; -1 when the lock is not the caller's.
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return -1 end
for _, entry in ipairs(redis.call('XREVRANGE', KEYS[2], '+', '-', 'COUNT', ARGV[4])) do
  if entry[2][2] == ARGV[2] then
    redis.call('XDEL', KEYS[2], entry[1])
    redis.call('XADD', KEYS[2], '*', 'report', ARGV[3])
    return 1
  end
end
return 2
