-- Removes the scope with all that it has. Returns 1 if it was there.
local bad = wrongScope()
if bad then return bad end
local was = call('EXISTS', META)
for _, name in ipairs(call('HKEYS', INDEX)) do call('DEL', K .. name) end
for _, id in ipairs(call('ZRANGE', MARKS, 0, -1)) do call('DEL', MARKS .. ':' .. id) end
call('DEL', META, INDEX, EXPIRY, USE, NOTES, MARKS, DIRTY, K .. TASK)
return was
