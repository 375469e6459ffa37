-- Returns what is told of each, oldest first.
local bad = wrong(MARKS, 'zset')
if bad then return bad end
local out = {}
for i, id in ipairs(call('ZRANGE', MARKS, 0, -1)) do out[i] = told(id) end
return out
