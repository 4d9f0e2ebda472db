-- Runs commands in one step if the caller holds the lock. May be repeated if the commands may.
-- KEYS  1 lock  then one key for each command
-- ARGV  1 lock token  then each command as a JSON array without its key: name, further arguments
-- Returns 1; -1 if the caller has lost the lock: then nothing is done.
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return -1 end
for i = 2, #ARGV do
  local command = cjson.decode(ARGV[i])
  redis.call(command[1], KEYS[i], unpack(command, 2))
end
return 1
