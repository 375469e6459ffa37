-- Empties the scratchpad. Returns how many entries went.
local bad = wrongScope()
if bad then return bad end
local n = call('ZCARD', NOTES)
trim(n)
return n
