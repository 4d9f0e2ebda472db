-- Ends an import that published nothing: drops what it staged, writes the history and its rejects.
-- KEYS  1 lock  2 staged  3 imports  4 rejects  then the staged keys
-- ARGV  1 lock token  2 staged number  3 report of the import  4 history cap  then the rejects, a header first
-- Gives 1, or -1 when the lock is not the caller's: then only the history is written.
redis.call('XADD', KEYS[3], 'MAXLEN', ARGV[4], '*', 'report', ARGV[3])
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return -1 end
for i = 5, #KEYS do redis.call('UNLINK', KEYS[i]) end
redis.call('SREM', KEYS[2], ARGV[2])
redis.call('DEL', KEYS[4])
redis.call('RPUSH', KEYS[4], unpack(ARGV, 5))
return 1
