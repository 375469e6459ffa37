-- ARGV: id. Returns 1 if it was there.
local bad = wrongScope()
if bad then return bad end
return discard(ARGV[1])
