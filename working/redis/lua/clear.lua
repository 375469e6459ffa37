-- Removes the user's items. Returns how many.
local bad = wrongScope()
if bad then return bad end
local n = 0
for _, name in ipairs(call('HKEYS', INDEX)) do
  if call('EXISTS', K .. name) == 1 then
    n = n + 1
    drop(name)
  else
    unindex(name)
  end
end
return n
