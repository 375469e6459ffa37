-- ARGV: text, how many to keep (0: all). Returns the entry and how many went.
local bad = wrongScope()
if bad then return bad end
local member = string.format('%020.0f', tonumber(seq())) .. ':' .. num(NOW) .. ':' .. ARGV[1]
call('ZADD', NOTES, seq(), member)
soil(noteName(member))
local keep, gone = tonumber(ARGV[2]), 0
if keep > 0 then gone = math.max(0, call('ZCARD', NOTES) - keep) end
trim(gone)
return { member, num(gone) }
