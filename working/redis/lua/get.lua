-- ARGV: 1 if reading counts as use, names. Returns the items.
local use = ARGV[1] == '1'
if use then
  local bad = wrongScope()
  if bad then return bad end
end
local out = {}
for i = 2, #ARGV do
  local bad = wrong(K .. ARGV[i], 'hash')
  if bad then return bad end
  out[#out + 1] = item(ARGV[i])
end
if use then
  for i = 2, #ARGV do
    if out[i - 1] and isUser(ARGV[i]) then
      -- Use is ordered by the same sequence as writes, which counts on.
      SEQ = nil
      call('ZADD', USE, 'XX', seq(), ARGV[i])
    end
  end
end
return out
