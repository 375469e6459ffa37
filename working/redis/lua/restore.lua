-- ARGV: id, id that undoes it, description of that, how many to keep. Returns
-- what is told of the one that undoes it.
local id, undo = ARGV[1], ARGV[2]
local bad = wrongScope() or wrong(markKey(undo), 'none')
if bad then return bad end
if not call('ZRANK', MARKS, id) then return redis.error_reply('VARVEMISSING ' .. id) end
local want, then_ = content(id)
if not want then return then_ end
local have = call('HKEYS', INDEX)
have[#have + 1] = TASK
for _, name in ipairs(have) do
  bad = wrong(K .. name, 'hash')
  if bad then return bad end
end
for name in pairs(want) do
  if string.byte(name) ~= 110 then
    bad = wrong(K .. name, 'hash')
    if bad then return bad end
  end
end
seq()
mark(undo, ARGV[3])
for _, name in ipairs(have) do
  if not want[name] then
    if call('EXISTS', K .. name) == 1 then drop(name) elseif isUser(name) then unindex(name) end
  end
end
local members = {}
for name, cell in pairs(want) do
  if string.byte(name) == 110 then
    members[cell] = true
  else
    local deadline, version, _, value = split(cell)
    if deadline > 0 then
      put(name, value, NOWMS + deadline - then_)
    elseif call('HGET', K .. name, 'n') ~= version or deadlineOf(name) > 0 then
      put(name, value, 0)
    end
  end
end
for _, member in ipairs(call('ZRANGE', NOTES, 0, -1)) do
  if members[member] then
    members[member] = nil
  else
    soil(noteName(member))
    call('ZREM', NOTES, member)
  end
end
for member in pairs(members) do
  soil(noteName(member))
  call('ZADD', NOTES, num(tonumber(string.sub(member, 1, 20))), member)
end
retain(tonumber(ARGV[4]), id, undo)
return told(undo)
