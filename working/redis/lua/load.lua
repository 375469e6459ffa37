-- ARGV: id, '' for the present. Returns items with their names, entries of the
-- scratchpad, and what is told of the checkpoint.
local bad = wrongScope()
if bad then return bad end
local items, notes, id = {}, {}, ARGV[1]
if id == '' then
  local names = call('HKEYS', INDEX)
  names[#names + 1] = TASK
  for _, name in ipairs(names) do
    bad = wrong(K .. name, 'hash')
    if bad then return bad end
    local it = item(name)
    if it then
      table.insert(it, 1, name)
      items[#items + 1] = it
    end
  end
  return { items, call('ZRANGE', NOTES, 0, -1), {} }
end
if not call('ZRANK', MARKS, id) then return redis.error_reply('VARVEMISSING ' .. id) end
local all, at = content(id)
if not all then return at end
for name, cell in pairs(all) do
  if string.byte(name) == 110 then
    notes[#notes + 1] = cell
  else
    local deadline, version, time, value = split(cell)
    items[#items + 1] = { name, value, version, time, num(deadline > 0 and deadline - at or FOREVER) }
  end
end
table.sort(notes)
return { items, notes, told(id) }
