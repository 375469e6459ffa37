-- ARGV: names. Returns 1 or 0 for each: was it there?
local bad = wrongScope()
if bad then return bad end
local out = {}
for i, name in ipairs(ARGV) do
  local was = call('EXISTS', K .. name)
  if was == 1 then drop(name) elseif isUser(name) then unindex(name) end
  out[i] = was
end
return out
