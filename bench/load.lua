-- Makes wrk send the requests of a file, one per line: path, then header fields, separated by tabs. Starts at a given line.
-- Prints the results as one line of JSON.

local requests = {}
local at = 0

function init(args)
   for line in io.lines(args[1]) do
      local path, headers = nil, {}
      for field in line:gmatch("[^\t]+") do
         if path == nil then
            path = field
         else
            local name, value = field:match("^(.-): (.*)$")
            headers[name] = value
         end
      end
      requests[#requests + 1] = wrk.format("GET", path, headers)
   end
   at = tonumber(args[2]) % #requests
end

function request()
   at = at % #requests + 1
   return requests[at]
end

function done(summary)
   local errors = summary.errors
   print(string.format(
      '{"requests":%d,"micros":%d,"refused":%d,"broken":%d,"late":%d}',
      summary.requests, summary.duration, errors.status,
      errors.connect + errors.read + errors.write, errors.timeout))
end
