-- What all scripts begin with. KEYS[1] is the scope's meta key; every other key
-- has the same hash tag, so a cluster keeps them on the same node.
local K = string.sub(KEYS[1], 1, -2)
local META, INDEX, EXPIRY, USE, NOTES, MARKS, DIRTY = K .. 'm', K .. 'i', K .. 'x', K .. 'u', K .. 'p', K .. 'c', K .. 'd'
local TASK = 't'
local FOREVER, KEEP = -1, -2
local call = redis.call

-- Numbers go out as text: a double holds them exactly, Lua's tostring does not.
local function num(n) return string.format('%.0f', n) end

local function clock()
  local t = call('TIME')
  return tonumber(t[1]) * 1000000 + tonumber(t[2])
end
local NOW = clock()
local NOWMS = math.floor(NOW / 1000)

-- A script that fails half-way leaves what it wrote, so every key it may write
-- is looked at before the first write.
local function wrong(key, kind)
  local is = call('TYPE', key).ok
  if is ~= 'none' and is ~= kind then
    return redis.error_reply('VARVETYPE ' .. is .. ' ' .. kind .. ' ' .. key)
  end
end

local function wrongScope()
  return wrong(META, 'hash') or wrong(INDEX, 'hash') or wrong(EXPIRY, 'zset') or wrong(USE, 'zset')
    or wrong(NOTES, 'zset') or wrong(MARKS, 'zset') or wrong(DIRTY, 'set')
end

local function isUser(name) return string.byte(name) == 118 end -- v<key>
local function size(name, value) return #name - 1 + #value end

-- A scope's sequence starts at the time, in microseconds, so that one that was
-- dropped and made again repeats no version.
local function attach()
  if call('HSETNX', META, 'created', num(NOW)) == 1 then
    call('HSET', META, 'seq', num(NOW))
  end
end

local SEQ
local function seq()
  if not SEQ then
    attach()
    SEQ = num(call('HINCRBY', META, 'seq', 1))
  end
  return SEQ
end

local tracking
local function soil(name)
  if tracking == nil then tracking = call('EXISTS', MARKS) == 1 end
  if tracking then call('SADD', DIRTY, name) end
end

local function indexed(name, bytes)
  local was = call('HGET', INDEX, name)
  call('HINCRBY', META, 'bytes', num(bytes - (was and tonumber(was) or 0)))
  call('HSET', INDEX, name, num(bytes))
end

local function unindex(name)
  local was = call('HGET', INDEX, name)
  if was then
    call('HINCRBY', META, 'bytes', num(-tonumber(was)))
    call('HDEL', INDEX, name)
    call('ZREM', EXPIRY, name)
    call('ZREM', USE, name)
  end
end

-- put and drop are the only ways in which items change. deadline is in
-- milliseconds, 0: none.
local function put(name, value, deadline)
  local key = K .. name
  call('DEL', key)
  call('HSET', key, 'v', value, 'n', seq(), 't', num(NOW))
  if isUser(name) then
    indexed(name, size(name, value))
    call('ZADD', USE, seq(), name)
    if deadline > 0 then call('ZADD', EXPIRY, num(deadline), name) else call('ZREM', EXPIRY, name) end
  end
  if deadline > 0 then call('PEXPIREAT', key, num(deadline)) end
  soil(name)
end

local function drop(name)
  call('DEL', K .. name)
  if isUser(name) then unindex(name) end
  soil(name)
end

local function deadlineOf(name)
  local at = call('ZSCORE', EXPIRY, name)
  return at and tonumber(at) or 0
end

-- Redis removes what has expired; its place in the index is freed here. It is no
-- change: nobody could see it any more.
local function sweep(most)
  for _, name in ipairs(call('ZRANGEBYSCORE', EXPIRY, '-inf', num(NOWMS), 'LIMIT', 0, most)) do
    if call('EXISTS', K .. name) == 0 then unindex(name) end
  end
end

-- An item as it is now: value, version, time, remaining milliseconds.
local function item(name)
  local h = call('HMGET', K .. name, 'v', 'n', 't')
  if not h[1] then return false end
  local left = FOREVER
  if isUser(name) then left = call('PTTL', K .. name) end
  if left == -2 then return false end
  return { h[1], h[2], h[3], num(left) }
end

-- How many of the user's items are there, how many have expired and still take
-- room, and the bytes of the former.
local function live()
  local keys, bytes, expired = call('HLEN', INDEX), tonumber(call('HGET', META, 'bytes') or '0'), 0
  for _, name in ipairs(call('ZRANGEBYSCORE', EXPIRY, '-inf', num(NOWMS))) do
    if call('EXISTS', K .. name) == 0 then
      expired = expired + 1
      bytes = bytes - tonumber(call('HGET', INDEX, name) or '0')
    end
  end
  return keys - expired, expired, bytes
end
