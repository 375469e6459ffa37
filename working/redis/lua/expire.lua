-- ARGV: name, ttl. Returns 1 if it was there.
local bad = wrongScope() or wrong(K .. ARGV[1], 'hash')
if bad then return bad end
local name, ttl = ARGV[1], tonumber(ARGV[2])
local value = call('HGET', K .. name, 'v')
if not value then return 0 end
if ttl == 0 then
  drop(name)
else
  put(name, value, ttl > 0 and NOWMS + ttl or 0)
end
return 1
