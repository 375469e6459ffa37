-- What must go so that the puts fit. puts has {name=, value=, deadline=}, value
-- nil where the item goes. Returns an error, or nil and the names that go.
local function room(puts, maxKeys, maxBytes, evict)
  if maxKeys <= 0 and maxBytes <= 0 then return nil, {} end
  local keys = call('HLEN', INDEX)
  local bytes = tonumber(call('HGET', META, 'bytes') or '0')
  local named, adds = {}, false
  for _, p in ipairs(puts) do
    if isUser(p.name) then
      local was = named[p.name]
      if was == nil then
        local at = call('HGET', INDEX, p.name)
        was = at and tonumber(at) or -1
      end
      local is = p.value and size(p.name, p.value) or -1
      if was >= 0 then keys, bytes = keys - 1, bytes - was end
      if is >= 0 then keys, bytes = keys + 1, bytes + is end
      if is > was then adds = true end
      named[p.name] = is
    end
  end
  local function full() return maxKeys > 0 and keys > maxKeys or maxBytes > 0 and bytes > maxBytes end
  if not adds or not full() then return nil, {} end
  local out, gone = {}, {}
  local function away(name)
    if not named[name] and not gone[name] then
      gone[name] = true
      keys, bytes = keys - 1, bytes - tonumber(call('HGET', INDEX, name) or '0')
      out[#out + 1] = name
    end
  end
  for _, name in ipairs(call('ZRANGEBYSCORE', EXPIRY, '-inf', num(NOWMS))) do
    if call('EXISTS', K .. name) == 0 then away(name) end
  end
  if evict then
    local at = 0
    while full() do
      local batch = call('ZRANGE', USE, at, at + 63)
      if #batch == 0 then break end
      for _, name in ipairs(batch) do
        if full() then away(name) end
      end
      at = at + 64
    end
  elseif full() then
    -- A server short of memory may have removed items itself.
    for _, name in ipairs(call('HKEYS', INDEX)) do
      if call('EXISTS', K .. name) == 0 then away(name) end
    end
  end
  if not full() then return nil, out end
  if maxKeys > 0 and keys > maxKeys then
    return redis.error_reply('VARVELIMIT keys ' .. num(maxKeys) .. ' ' .. num(keys))
  end
  return redis.error_reply('VARVELIMIT bytes ' .. num(maxBytes) .. ' ' .. num(bytes))
end
