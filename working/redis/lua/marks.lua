-- A checkpoint is a hash: what changed since the one before, by item name, and
-- i.… about itself. An item is <deadline>:<version>:<time>:<value>, '' where it is
-- gone, the entry of the scratchpad as it is. i.base names the checkpoint that it
-- rests on, '' if it is whole.
local INFO = { 'i.time', 'i.ms', 'i.base', 'i.keys', 'i.notes', 'i.text' }

local function markKey(id) return MARKS .. ':' .. id end

local function info(id)
  if call('TYPE', markKey(id)).ok ~= 'hash' then return nil end
  local h = call('HMGET', markKey(id), unpack(INFO))
  if not (h[1] and h[2] and h[3] and h[4] and h[5]) then return nil end
  return { time = h[1], ms = tonumber(h[2]), base = h[3], keys = h[4], notes = h[5], text = h[6] or '' }
end

local function told(id)
  local m = info(id)
  if not m then return { id } end
  return { id, m.time, m.keys, m.notes, num(call('HLEN', markKey(id)) - #INFO), m.text }
end

local function present(name)
  if string.byte(name) == 110 then -- n<sequence>
    local s = num(tonumber(string.sub(name, 2)))
    return call('ZRANGEBYSCORE', NOTES, s, s)[1] or ''
  end
  local h = call('HMGET', K .. name, 'v', 'n', 't')
  if not h[1] then return '' end
  return num(deadlineOf(name)) .. ':' .. h[2] .. ':' .. h[3] .. ':' .. h[1]
end

local function split(cell)
  local deadline, version, time, at = string.match(cell, '^(%d+):(%d+):(%d+):()')
  return tonumber(deadline), version, time, string.sub(cell, at)
end

-- The ids that a checkpoint rests on, itself last; nil and the id of the one
-- that is missing or damaged.
local function chain(id)
  local list = {}
  while true do
    local m = info(id)
    if not m then return nil, id end
    table.insert(list, 1, id)
    if m.base == '' then return list end
    if #list > 100000 then return nil, id end
    id = m.base
  end
end

-- What a checkpoint holds: cells by name, and its time. What was over by then is
-- not in it.
local function content(id)
  local list, missing = chain(id)
  if not list then
    return nil, redis.error_reply('VARVECORRUPT ' .. id .. ' ' .. missing)
  end
  local all = {}
  for _, one in ipairs(list) do
    local h = call('HGETALL', markKey(one))
    for i = 1, #h, 2 do
      if string.byte(h[i]) ~= 105 then all[h[i]] = h[i + 1] end -- i.…
    end
  end
  local at = info(id).ms
  for name, cell in pairs(all) do
    if cell == '' then
      all[name] = nil
    elseif string.byte(name) ~= 110 then
      local deadline = split(cell)
      if deadline > 0 and deadline <= at then all[name] = nil end
    end
  end
  return all, at
end

local function mark(id, text)
  local last = call('ZRANGE', MARKS, -1, -1)[1]
  local base = ''
  -- On a chain that is broken nothing rests: the next one is whole again.
  if last and chain(last) and call('HGET', META, 'whole') ~= '1' then base = last end
  local key = markKey(id)
  local keys = live()
  if base == '' then
    for _, name in ipairs(call('HKEYS', INDEX)) do
      local cell = present(name)
      if cell ~= '' then call('HSET', key, name, cell) end
    end
    if call('EXISTS', K .. TASK) == 1 then call('HSET', key, TASK, present(TASK)) end
    for _, member in ipairs(call('ZRANGE', NOTES, 0, -1)) do call('HSET', key, noteName(member), member) end
  else
    for _, name in ipairs(call('SMEMBERS', DIRTY)) do call('HSET', key, name, present(name)) end
  end
  call('HSET', key, 'i.time', num(NOW), 'i.ms', num(NOWMS), 'i.base', base, 'i.keys', num(keys), 'i.notes', num(call('ZCARD', NOTES)), 'i.text', text)
  call('ZADD', MARKS, seq(), id)
  call('DEL', DIRTY)
  call('HDEL', META, 'whole')
  tracking = true
end

-- Lays a checkpoint under the one that rests on it; see State.discard. Returns 1
-- if it was there.
local function discard(id)
  local rank = call('ZRANK', MARKS, id)
  if not rank then return 0 end
  local m, key = info(id), markKey(id)
  local after = call('ZRANGE', MARKS, rank + 1, rank + 1)[1]
  local next = after and info(after)
  call('ZREM', MARKS, id)
  if not m then
    if not after then call('HSET', META, 'whole', '1') end
  elseif next and next.base == id then
    local h = call('HGETALL', markKey(after))
    for i = 1, #h, 2 do
      if m.base == '' and h[i + 1] == '' and string.byte(h[i]) ~= 105 then
        call('HDEL', key, h[i])
      else
        call('HSET', key, h[i], h[i + 1])
      end
    end
    call('HSET', key, 'i.base', m.base)
    call('RENAME', key, markKey(after))
  elseif not after and m.base ~= '' then
    for _, name in ipairs(call('HKEYS', key)) do
      if string.byte(name) ~= 105 then call('SADD', DIRTY, name) end
    end
  end
  call('DEL', key)
  if call('EXISTS', MARKS) == 0 then
    call('DEL', DIRTY)
    call('HDEL', META, 'whole')
    tracking = false
  end
  return 1
end

local function retain(keep, spareA, spareB)
  if keep <= 0 then return end
  local over = call('ZCARD', MARKS) - keep
  for _, id in ipairs(call('ZRANGE', MARKS, 0, -1)) do
    if over <= 0 then break end
    if id ~= spareA and id ~= spareB then
      discard(id)
      over = over - 1
    end
  end
end
