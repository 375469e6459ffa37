-- ARGV: id, description, how many to keep. Returns what is told of it.
local bad = wrongScope() or wrong(markKey(ARGV[1]), 'none')
if bad then return bad end
seq()
mark(ARGV[1], ARGV[2])
retain(tonumber(ARGV[3]), ARGV[1], nil)
return told(ARGV[1])
