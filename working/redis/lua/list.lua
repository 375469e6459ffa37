-- ARGV: 1 if values are wanted. Returns the user's items, each with its name.
local values = ARGV[1] == '1'
local bad = wrong(INDEX, 'hash')
if bad then return bad end
local out = {}
for _, name in ipairs(call('HKEYS', INDEX)) do
  if not values then
    if call('EXISTS', K .. name) == 1 then out[#out + 1] = { name } end
  else
    bad = wrong(K .. name, 'hash')
    if bad then return bad end
    local it = item(name)
    if it then
      table.insert(it, 1, name)
      out[#out + 1] = it
    end
  end
end
return out
