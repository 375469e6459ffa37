-- ARGV: max keys, max bytes, 1 if evicting, then for each item name, value, ttl,
-- ttl if new, condition (0 always, 1 absent, 2 version, 3 add), version or what to add.
-- Returns the sequence, the time, and for each item its ttl, or for 3 the sum.
local bad = wrongScope()
if bad then return bad end
local puts, ttls = {}, {}
for i = 4, #ARGV, 6 do
  local name, value, ttl, ifNew, cond, ver = ARGV[i], ARGV[i + 1], tonumber(ARGV[i + 2]), tonumber(ARGV[i + 3]), ARGV[i + 4], ARGV[i + 5]
  bad = wrong(K .. name, 'hash')
  if bad then return bad end
  local was = call('HMGET', K .. name, 'v', 'n')
  local there = was[1] and true or false
  if cond == '1' and there or cond == '2' and was[2] ~= ver then
    return redis.error_reply('VARVECONFLICT ' .. name)
  end
  local told
  if cond == '3' then
    local n = was[1] or '0'
    if n ~= '0' and not string.match(n, '^%-?[1-9][0-9]*$') then return redis.error_reply('VARVEINTEGER ' .. string.sub(n, 1, 80)) end
    -- Only the server adds 64 bits exactly; a key of its own, gone again at once.
    local scratch = K .. 'z'
    call('SET', scratch, n)
    local sum = redis.pcall('INCRBY', scratch, ver)
    value = call('GET', scratch)
    call('DEL', scratch)
    if type(sum) == 'table' then
      if string.find(sum.err, 'overflow') then return redis.error_reply('VARVEOVERFLOW ' .. n) end
      return redis.error_reply('VARVEINTEGER ' .. string.sub(n, 1, 80))
    end
    told = value
  end
  local deadline = 0
  if ttl == KEEP and there then
    deadline = deadlineOf(name)
    if deadline > 0 then ttl = math.max(1, deadline - NOWMS) else ttl = FOREVER end
  else
    if ttl == KEEP then ttl = ifNew end
    if ttl > 0 then deadline = NOWMS + ttl end
  end
  if ttl == 0 then value = nil end
  puts[#puts + 1] = { name = name, value = value, deadline = deadline }
  ttls[#ttls + 1] = told or num(ttl)
end
local err, gone = room(puts, tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3] == '1')
if err then return err end
-- A server at its maxmemory refuses the first write that adds, and takes others
-- after one that it took: so the first is one that adds.
for _, p in ipairs(puts) do
  if p.value or call('EXISTS', K .. p.name) == 1 then seq() end
end
for _, name in ipairs(gone) do drop(name) end
for _, p in ipairs(puts) do
  if p.value then
    put(p.name, p.value, p.deadline)
  elseif call('EXISTS', K .. p.name) == 1 then
    drop(p.name)
  end
end
sweep(4)
table.insert(ttls, 1, num(NOW))
table.insert(ttls, 1, SEQ or '0')
return ttls
